def divisors(n: int) -> list[int]:
    found = []
    for divisor in range(1, n + 1):
        if n % divisor == 0:
            found.append(divisor)
    return found
