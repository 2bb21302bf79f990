"""Two texts that differ in their last letter only."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    prefix = "".join(Random(seed).choices(ascii_lowercase, k=size))
    return [prefix + "x", prefix + "y"]
