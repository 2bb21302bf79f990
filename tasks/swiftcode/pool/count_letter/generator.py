"""A text of lowercase letters, and one of them."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return ["".join(random.choices(ascii_lowercase, k=size)), random.choice(ascii_lowercase)]
