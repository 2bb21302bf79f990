import random


def generate(size, seed):
    rng = random.Random(seed)
    k = rng.randint(9 * size // 100, size // 10) or 1
    values = [rng.randint(-1_000_000, 1_000_000) for _ in range(size)]
    return f"{size} {k}\n{' '.join(map(str, values))}\n"
