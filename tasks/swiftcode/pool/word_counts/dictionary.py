def word_counts(words: list[str]) -> dict[str, int]:
    counts = {}
    for word in words:
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    return counts
