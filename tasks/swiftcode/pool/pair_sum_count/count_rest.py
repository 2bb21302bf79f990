import sys


def pairs(values, target):
    count = 0
    for i in range(len(values)):
        count += values[i + 1 :].count(target - values[i])
    return count


data = list(map(int, sys.stdin.read().split()))
print(pairs(data[2:], data[1]))
