import random


def generate(size, seed):
    rng = random.Random(seed)
    values = [rng.randint(-size, size) for _ in range(size)]
    target = rng.randint(-size // 2, size // 2)
    return f"{size} {target}\n{' '.join(map(str, values))}\n"
