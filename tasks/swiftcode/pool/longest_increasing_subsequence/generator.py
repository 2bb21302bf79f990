import random


def generate(size, seed):
    rng = random.Random(seed)
    trend = rng.randint(0, 10)  # the steeper it is, the longer the answer
    values = [trend * i + rng.randint(-10 * size, 10 * size) for i in range(size)]
    return f"{size}\n{' '.join(map(str, values))}\n"
