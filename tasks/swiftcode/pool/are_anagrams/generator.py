"""A text of lowercase letters and the same text in another order."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    letters = random.choices(ascii_lowercase, k=size)
    first = "".join(letters)
    turn = random.randrange(size)
    return [first, first[turn:] + first[:turn]]
