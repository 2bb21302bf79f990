def most_common_word(words: list[str]) -> str:
    return max(words, key=words.count)
