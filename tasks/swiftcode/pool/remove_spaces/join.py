def remove_spaces(text: str) -> str:
    return "".join([character for character in text if character != " "])
