import random


def generate(size, seed):
    return f"{size - random.Random(seed).randint(0, size // 100)}\n"
