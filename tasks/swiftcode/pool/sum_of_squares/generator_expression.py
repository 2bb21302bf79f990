def sum_of_squares(n: int) -> int:
    return sum(number * number for number in range(1, n + 1))
