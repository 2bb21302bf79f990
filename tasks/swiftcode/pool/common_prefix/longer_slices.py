def common_prefix(first: str, second: str) -> str:
    length = 0
    while length < min(len(first), len(second)) and second.startswith(first[: length + 1]):
        length += 1
    return first[:length]
