def has_duplicates(numbers: list[int]) -> bool:
    for number in numbers:
        if numbers.count(number) > 1:
            return True
    return False
