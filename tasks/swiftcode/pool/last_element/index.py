def last_element(items: list[int]) -> int:
    return items[-1]
