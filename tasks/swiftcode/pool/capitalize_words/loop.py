def capitalize_words(text: str) -> str:
    result = ""
    previous = " "
    for character in text:
        if previous == " ":
            result += character.upper()
        else:
            result += character
        previous = character
    return result
