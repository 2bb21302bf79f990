def factorial(n: int) -> int:
    result = 1
    for number in range(2, n + 1):
        result *= number
    return result
