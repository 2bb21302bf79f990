def has_pair_with_sum(numbers: list[int], target: int) -> bool:
    for i, number in enumerate(numbers):
        if target - number in numbers[i + 1 :]:
            return True
    return False
