"""As many lists as the size says, each of none to four numbers."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[list(random.randbytes(random.randint(0, 4))) for _ in range(size)]]
