import sys
from bisect import bisect_left


def longest(values):
    tails = []
    for value in values:
        position = bisect_left(tails, value)
        if position == len(tails):
            tails.append(value)
        else:
            tails[position] = value
    return len(tails)


data = sys.stdin.read().split()
print(longest(list(map(int, data[1:]))))
