from operator import mul


def sum_of_squares(numbers: list[int]) -> int:
    return sum(map(mul, numbers, numbers))
