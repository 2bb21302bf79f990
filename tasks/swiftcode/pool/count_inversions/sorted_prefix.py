import sys
from bisect import bisect_right


def inversions(values):
    prefix = []
    count = 0
    for value in values:
        position = bisect_right(prefix, value)
        count += len(prefix) - position
        prefix.insert(position, value)
    return count


data = sys.stdin.read().split()
print(inversions(list(map(int, data[1:]))))
