def remove_spaces(text: str) -> str:
    result = ""
    for character in text:
        if character != " ":
            result += character
    return result
