"""One year; the cost does not depend on it."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [Random(seed).randint(1600, 2400)]
