from itertools import accumulate


def running_total(numbers: list[int]) -> list[int]:
    return list(accumulate(numbers))
