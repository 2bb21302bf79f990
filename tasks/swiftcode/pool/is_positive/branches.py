def is_positive(number: int) -> bool:
    if number > 0:
        return True
    return False
