def gcd(a: int, b: int) -> int:
    divisor = min(a, b)
    while a % divisor or b % divisor:
        divisor -= 1
    return divisor
