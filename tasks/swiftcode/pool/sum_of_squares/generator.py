"""Many small numbers, in no order."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [list(Random(seed).randbytes(size))]
