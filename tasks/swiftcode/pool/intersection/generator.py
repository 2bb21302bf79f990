"""Two lists that share about half of their numbers."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [random.sample(range(2 * size), size), random.sample(range(2 * size), size)]
