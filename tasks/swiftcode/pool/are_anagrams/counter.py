from collections import Counter


def are_anagrams(first: str, second: str) -> bool:
    return Counter(first) == Counter(second)
