def absolute_value(number: int) -> int:
    if number < 0:
        return -number
    return number
