def sum_of_squares(numbers: list[int]) -> int:
    return sum(number * number for number in numbers)
