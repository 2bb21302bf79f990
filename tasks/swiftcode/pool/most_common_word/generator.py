"""Words, each of them about three times, and one that is more common than any other."""

from random import Random


def generate(size: int, seed: int) -> list:
    random = Random(seed)
    words = [f"word{random.randint(0, size // 3)}" for _ in range(size)] + ["most"] * (size // 10 + size)
    random.shuffle(words)
    return [words]
