from collections import Counter


def word_counts(words: list[str]) -> dict[str, int]:
    return dict(Counter(words))
