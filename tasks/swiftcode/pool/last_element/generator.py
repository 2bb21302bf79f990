"""Ten numbers; the cost does not depend on how many there are."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [list(Random(seed).randbytes(10))]
