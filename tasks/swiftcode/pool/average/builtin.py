def average(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)
