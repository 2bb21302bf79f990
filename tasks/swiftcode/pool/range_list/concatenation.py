def range_list(n: int) -> list[int]:
    result = []
    for number in range(n):
        result = result + [number]
    return result
