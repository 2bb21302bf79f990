import sys


def sort_and_count(values):
    if len(values) < 2:
        return values, 0
    middle = len(values) // 2
    left, count_left = sort_and_count(values[:middle])
    right, count_right = sort_and_count(values[middle:])
    merged = []
    count = count_left + count_right
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
            count += len(left) - i
    merged += left[i:]
    merged += right[j:]
    return merged, count


data = sys.stdin.read().split()
print(sort_and_count(list(map(int, data[1:])))[1])
