"""Words of lowercase letters, with one space between them."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    text = "".join(Random(seed).choices(ascii_lowercase + "     ", k=size))
    return [" ".join(text.split())]
