def has_duplicates(numbers: list[int]) -> bool:
    return len(set(numbers)) != len(numbers)
