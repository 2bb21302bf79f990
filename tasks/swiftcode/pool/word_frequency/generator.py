import random
from math import isqrt


def generate(size, seed):
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 8))) for _ in range(6 * isqrt(size))]
    words = [vocabulary[int(len(vocabulary) * rng.random() ** 2)] for _ in range(size)]  # some words are rare
    return "\n".join(" ".join(words[start : start + 12]) for start in range(0, size, 12)) + "\n"
