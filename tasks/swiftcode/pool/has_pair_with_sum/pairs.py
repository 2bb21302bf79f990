def has_pair_with_sum(numbers: list[int], target: int) -> bool:
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == target:
                return True
    return False
