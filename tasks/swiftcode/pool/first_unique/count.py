def first_unique(text: str) -> str:
    for character in text:
        if text.count(character) == 1:
            return character
    return ""
