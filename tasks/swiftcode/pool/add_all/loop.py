def add_all(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number
    return total
