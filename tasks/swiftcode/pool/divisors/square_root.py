def divisors(n: int) -> list[int]:
    small, large = [], []
    divisor = 1
    while divisor * divisor <= n:
        if n % divisor == 0:
            small.append(divisor)
            if divisor * divisor != n:
                large.append(n // divisor)
        divisor += 1
    return small + large[::-1]
