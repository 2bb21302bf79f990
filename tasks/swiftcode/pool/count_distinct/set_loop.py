def count_distinct(text: str) -> int:
    found = set()
    for character in text:
        found.add(character)
    return len(found)
