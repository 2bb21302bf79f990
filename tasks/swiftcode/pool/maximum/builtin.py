def maximum(numbers: list[int]) -> int:
    return max(numbers)
