"""The n for which the plain recursion makes about as many calls as the size says."""


def generate(size: int, seed: int) -> list:
    n, calls, before = 0, 1, 1
    while calls < size:
        n, calls, before = n + 1, calls + before + 1, calls
    return [n]
