def sum_of_squares(n: int) -> int:
    total = 0
    for number in range(1, n + 1):
        total += number**2
    return total
