"""One number of any sign; the cost does not depend on it."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [Random(seed).randint(-1000, 1000)]
