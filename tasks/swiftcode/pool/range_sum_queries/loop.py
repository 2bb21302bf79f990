import sys


def range_sum(values, first, last):
    total = 0
    for i in range(first - 1, last):
        total += values[i]
    return total


data = list(map(int, sys.stdin.read().split()))
n, q = data[:2]
values = data[2 : n + 2]
for i in range(n + 2, len(data), 2):
    print(range_sum(values, data[i], data[i + 1]))
