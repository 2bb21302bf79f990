def range_list(n: int) -> list[int]:
    result = []
    for number in range(n):
        result.append(number)
    return result
