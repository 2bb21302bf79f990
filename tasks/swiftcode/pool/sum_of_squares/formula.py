def sum_of_squares(n: int) -> int:
    return n * (n + 1) * (2 * n + 1) // 6
