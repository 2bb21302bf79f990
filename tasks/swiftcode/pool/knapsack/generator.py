import random
from math import isqrt


def generate(size, seed):
    rng = random.Random(seed)
    count = isqrt(size // 16) + 1
    capacity = 16 * count  # about `size` pairs of an item and a capacity
    items = [f"{rng.randint(1, capacity // 4)} {rng.randint(1, 1000)}\n" for _ in range(count)]
    return f"{count} {capacity}\n{''.join(items)}"
