def intersection(first: list[int], second: list[int]) -> list[int]:
    return list(set(first) & set(second))
