def flatten(lists: list[list[int]]) -> list[int]:
    result = []
    for items in lists:
        for item in items:
            result.append(item)
    return result
