from collections import Counter


def most_common_word(words: list[str]) -> str:
    return Counter(words).most_common(1)[0][0]
