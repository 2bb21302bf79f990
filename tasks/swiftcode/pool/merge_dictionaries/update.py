def merge_dictionaries(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    merged = first.copy()
    merged.update(second)
    return merged
