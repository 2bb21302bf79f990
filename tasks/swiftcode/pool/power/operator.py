def power(base: int, exponent: int) -> int:
    return base**exponent
