def add_all(numbers: list[int]) -> int:
    return sum(numbers)
