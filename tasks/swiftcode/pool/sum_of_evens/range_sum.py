def sum_of_evens(n: int) -> int:
    return sum(range(0, n + 1, 2))
