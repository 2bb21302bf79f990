def maximum(numbers: list[int]) -> int:
    return sorted(numbers)[-1]
