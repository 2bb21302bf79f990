def merge_dictionaries(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {**first, **second}
