def has_pair_with_sum(numbers: list[int], target: int) -> bool:
    seen = set()
    for number in numbers:
        if target - number in seen:
            return True
        seen.add(number)
    return False
