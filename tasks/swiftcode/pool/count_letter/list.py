def count_letter(text: str, letter: str) -> int:
    return len([character for character in text if character == letter])
