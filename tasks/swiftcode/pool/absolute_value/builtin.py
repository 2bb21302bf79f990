def absolute_value(number: int) -> int:
    return abs(number)
