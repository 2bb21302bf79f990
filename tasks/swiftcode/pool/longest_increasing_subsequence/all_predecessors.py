import sys


def longest(values):
    length = [1] * len(values)
    for i in range(len(values)):
        for j in range(i):
            if values[j] < values[i] and length[j] + 1 > length[i]:
                length[i] = length[j] + 1
    return max(length)


data = sys.stdin.read().split()
print(longest(list(map(int, data[1:]))))
