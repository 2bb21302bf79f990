import random


def generate(size, seed):
    rng = random.Random(seed)
    values = [rng.randint(-1_000_000_000, 1_000_000_000) for _ in range(size)]
    queries = []
    for _ in range(size):
        first, last = rng.randint(1, size), rng.randint(1, size)
        queries.append(f"{min(first, last)} {max(first, last)}\n")
    return f"{size} {size}\n{' '.join(map(str, values))}\n{''.join(queries)}"
