def range_list(n: int) -> list[int]:
    return list(range(n))
