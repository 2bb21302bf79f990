import random


def generate(size, seed):
    rng = random.Random(seed)
    edges = [f"{rng.randint(1, size)} {rng.randint(1, size)} {rng.randint(1, 1000)}\n" for _ in range(3 * size)]
    return f"{size} {len(edges)}\n{''.join(edges)}"
