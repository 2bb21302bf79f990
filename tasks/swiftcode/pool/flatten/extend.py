def flatten(lists: list[list[int]]) -> list[int]:
    result = []
    for items in lists:
        result.extend(items)
    return result
