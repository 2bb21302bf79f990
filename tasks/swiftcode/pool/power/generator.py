"""A small base that is no power of two; the size is the exponent."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [Random(seed).choice([3, 5, 6, 7]), size]
