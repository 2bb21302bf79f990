"""Different numbers: a repetition would end the search early."""

from random import Random


def generate(size: int, seed: int) -> list:
    return [Random(seed).sample(range(2 * size), size)]
