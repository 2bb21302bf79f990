"""Words, each of them about three times."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[f"word{random.randint(0, size // 3)}" for _ in range(size)]]
