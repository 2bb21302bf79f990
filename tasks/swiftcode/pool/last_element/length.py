def last_element(items: list[int]) -> int:
    return items[len(items) - 1]
