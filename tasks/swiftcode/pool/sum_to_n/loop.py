def sum_to_n(n: int) -> int:
    total = 0
    for number in range(1, n + 1):
        total += number
    return total
