def count_distinct(text: str) -> int:
    found = []
    for character in text:
        if character not in found:
            found.append(character)
    return len(found)
