"""A text of lowercase letters."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    return ["".join(Random(seed).choices(ascii_lowercase, k=size))]
