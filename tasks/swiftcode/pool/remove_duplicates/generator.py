"""Numbers of which about every third is a repetition."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[random.randint(1, size) for _ in range(size)]]
