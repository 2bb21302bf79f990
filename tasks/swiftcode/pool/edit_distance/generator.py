import random


def generate(size, seed):
    rng = random.Random(seed)
    first = rng.choices("abcdefgh", k=size)
    second = []
    for letter in first:  # the second word is the first with about one edit in two letters
        edit = rng.random()
        if edit < 0.7:
            second.append(letter if edit < 0.5 else rng.choice("abcdefgh"))
        elif edit < 0.85:
            second += [letter, rng.choice("abcdefgh")]
    return f"{''.join(first)}\n{''.join(second) or 'a'}\n"
