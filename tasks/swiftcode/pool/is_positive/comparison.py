def is_positive(number: int) -> bool:
    return number > 0
