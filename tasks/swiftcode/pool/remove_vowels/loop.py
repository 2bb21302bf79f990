def remove_vowels(text: str) -> str:
    result = ""
    for letter in text:
        if letter not in "aeiou":
            result += letter
    return result
