"""A palindrome: other texts are done at their first difference."""

from random import Random
from string import ascii_lowercase


def generate(size: int, seed: int) -> list:
    half = "".join(Random(seed).choices(ascii_lowercase, k=size // 2))
    return [half + "x" * (size % 2) + half[::-1]]
