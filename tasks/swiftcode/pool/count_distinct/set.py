def count_distinct(text: str) -> int:
    return len(set(text))
