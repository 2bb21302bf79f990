def sum_of_evens(n: int) -> int:
    half = n // 2
    return half * (half + 1)
