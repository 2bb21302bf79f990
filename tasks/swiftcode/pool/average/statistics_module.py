import statistics


def average(numbers: list[int]) -> float:
    return float(statistics.mean(numbers))
