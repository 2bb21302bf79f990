import sys


def pairs(values, target):
    count = 0
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] + values[j] == target:
                count += 1
    return count


data = list(map(int, sys.stdin.read().split()))
print(pairs(data[2:], data[1]))
