"""One temperature in quarters of a degree; the cost does not depend on it."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [Random(seed).randint(-400, 400) / 4]
