"""Two numbers without a common divisor; the size is the smaller one."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [size, Random(seed).randint(2, 9) * size + 1]
