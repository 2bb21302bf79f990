def remove_vowels(text: str) -> str:
    return "".join([letter for letter in text if letter not in "aeiou"])
