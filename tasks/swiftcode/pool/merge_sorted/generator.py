"""Two sorted lists whose numbers alternate, so that neither ends early."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    return [sorted(random.randint(0, size) for _ in range(size)) for _ in range(2)]
