"""The cost depends on n alone."""


def generate(size: int, seed: int) -> list:
    return [size + seed % 10]
