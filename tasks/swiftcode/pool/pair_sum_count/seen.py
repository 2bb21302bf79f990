import sys
from collections import defaultdict


def pairs(values, target):
    seen = defaultdict(int)
    count = 0
    for value in values:
        if target - value in seen:
            count += seen[target - value]
        seen[value] += 1
    return count


data = list(map(int, sys.stdin.read().split()))
print(pairs(data[2:], data[1]))
