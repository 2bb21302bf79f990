import sys
from bisect import bisect_left, bisect_right


def pairs(values, target):
    values = sorted(values)
    count = 0
    for i, value in enumerate(values):
        rest = target - value
        count += bisect_right(values, rest, i + 1) - bisect_left(values, rest, i + 1)
    return count


data = list(map(int, sys.stdin.read().split()))
print(pairs(data[2:], data[1]))
