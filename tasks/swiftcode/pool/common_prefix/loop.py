def common_prefix(first: str, second: str) -> str:
    prefix = ""
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        prefix += a
    return prefix
