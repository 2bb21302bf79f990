def count_letter(text: str, letter: str) -> int:
    count = 0
    for character in text:
        if character == letter:
            count += 1
    return count
