def second_largest(numbers: list[int]) -> int:
    return sorted(set(numbers))[-2]
