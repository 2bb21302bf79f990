def add_all(numbers: list[int]) -> int:
    if not numbers:
        return 0
    if len(numbers) == 1:
        return numbers[0]
    middle = len(numbers) // 2
    return add_all(numbers[:middle]) + add_all(numbers[middle:])
