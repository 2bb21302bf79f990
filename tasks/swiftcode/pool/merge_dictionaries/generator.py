"""Two dictionaries of a few letters, as people merge them: no size makes a difference between the ways."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [{letter: random.randint(0, 99) for letter in random.sample(ascii_lowercase, 15)} for _ in range(2)]
