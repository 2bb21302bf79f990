"""Numbers of both signs, in no order."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[random.randint(-size, size) for _ in range(size)]]
