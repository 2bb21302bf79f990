def intersection(first: list[int], second: list[int]) -> list[int]:
    return [number for number in first if number in second]
