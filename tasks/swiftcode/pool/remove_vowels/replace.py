def remove_vowels(text: str) -> str:
    for vowel in "aeiou":
        text = text.replace(vowel, "")
    return text
