def sum_of_evens(n: int) -> int:
    total = 0
    for number in range(n + 1):
        if number % 2 == 0:
            total += number
    return total
