def reverse_string(text: str) -> str:
    result = ""
    for character in text:
        result = character + result
    return result
