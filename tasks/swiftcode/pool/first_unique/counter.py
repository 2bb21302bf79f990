from collections import Counter


def first_unique(text: str) -> str:
    for character, count in Counter(text).items():
        if count == 1:
            return character
    return ""
