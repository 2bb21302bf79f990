def sum_of_squares(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number**2
    return total
