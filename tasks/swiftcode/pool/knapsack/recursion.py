import sys
from functools import cache

sys.setrecursionlimit(10_000)
data = list(map(int, sys.stdin.read().split()))
n, capacity = data[:2]
weights = data[2::2]
values = data[3::2]


@cache
def best(i, room):
    if i == n:
        return 0
    without = best(i + 1, room)
    if weights[i] > room:
        return without
    return max(without, values[i] + best(i + 1, room - weights[i]))


print(best(0, capacity))
