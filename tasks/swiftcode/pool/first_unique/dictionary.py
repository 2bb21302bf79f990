def first_unique(text: str) -> str:
    counts = {}
    for character in text:
        counts[character] = counts.get(character, 0) + 1
    for character in text:
        if counts[character] == 1:
            return character
    return ""
