def is_even(number: int) -> bool:
    return number & 1 == 0
