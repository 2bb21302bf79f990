import random
from math import isqrt


def generate(size, seed):
    rng = random.Random(seed)
    rows = isqrt(size)
    columns = size // rows
    lines = [" ".join(str(rng.randint(-1000, 1000)) for _ in range(columns)) for _ in range(rows)]
    return f"{rows} {columns}\n" + "".join(line + "\n" for line in lines)
