def divisors(n: int) -> list[int]:
    return [divisor for divisor in range(1, n // 2 + 1) if n % divisor == 0] + [n]
