def reverse_string(text: str) -> str:
    return "".join(reversed(text))
