def filter_even(numbers: list[int]) -> list[int]:
    return [number for number in numbers if number % 2 == 0]
