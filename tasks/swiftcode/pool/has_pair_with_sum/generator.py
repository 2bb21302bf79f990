"""Even numbers and an odd target: no pair ends the search early."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[2 * random.randint(0, size) for _ in range(size)], 2 * size + 1]
