import sys


def longest(values):
    rank = {value: i + 1 for i, value in enumerate(sorted(set(values)))}
    best = [0] * (len(rank) + 1)
    for value in values:
        length = 0
        i = rank[value] - 1
        while i > 0:
            length = max(length, best[i])
            i -= i & -i
        length += 1
        i = rank[value]
        while i <= len(rank):
            best[i] = max(best[i], length)
            i += i & -i
    return max(best)


data = sys.stdin.read().split()
print(longest(list(map(int, data[1:]))))
