"""The largest prime up to about the size: other numbers are done at their first divisor."""

from random import Random


def generate(size: int, seed: int) -> list:
    n = max(2, size - Random(seed).randint(0, size // 10))
    while any(n % divisor == 0 for divisor in range(2, int(n**0.5) + 1)):
        n -= 1
    return [n]
