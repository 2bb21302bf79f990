"""Numbers of both signs, in no order; two more make sure that there is a second one."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [[random.randint(-size, size) for _ in range(size)] + [0, 1]]
