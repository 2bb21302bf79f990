def second_largest(numbers: list[int]) -> int:
    return max([number for number in numbers if number != max(numbers)])
