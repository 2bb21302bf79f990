def merge_sorted(first: list[int], second: list[int]) -> list[int]:
    i = j = 0
    merged = []
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            merged.append(first[i])
            i += 1
        else:
            merged.append(second[j])
            j += 1
    return merged + first[i:] + second[j:]
