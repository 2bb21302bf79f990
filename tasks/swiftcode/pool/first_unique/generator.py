"""A text whose last letter alone is there only once."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    half = "".join(Random(seed).choices(ascii_lowercase[:-1], k=size // 2))
    return [half + half + "z"]
