import random


def generate(size, seed):
    rng = random.Random(seed)
    top = rng.choice([size, 1_000_000_000])  # many equal values, or hardly any
    values = [rng.randint(-top, top) for _ in range(size)]
    return f"{size}\n{' '.join(map(str, values))}\n"
