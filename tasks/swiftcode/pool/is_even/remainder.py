def is_even(number: int) -> bool:
    return number % 2 == 0
