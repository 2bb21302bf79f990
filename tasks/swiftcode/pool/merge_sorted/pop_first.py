def merge_sorted(first: list[int], second: list[int]) -> list[int]:
    first, second = first[:], second[:]
    merged = []
    while first and second:
        if first[0] <= second[0]:
            merged.append(first.pop(0))
        else:
            merged.append(second.pop(0))
    return merged + first + second
