def capitalize_words(text: str) -> str:
    return text.title()
