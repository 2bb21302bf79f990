def count_letter(text: str, letter: str) -> int:
    return text.count(letter)
