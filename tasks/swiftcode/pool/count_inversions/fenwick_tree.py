import sys


def inversions(values):
    rank = {value: i + 1 for i, value in enumerate(sorted(set(values)))}
    tree = [0] * (len(rank) + 1)
    count = 0
    for seen, value in enumerate(values):
        smaller_or_equal = 0
        i = rank[value]
        while i > 0:
            smaller_or_equal += tree[i]
            i -= i & -i
        count += seen - smaller_or_equal
        i = rank[value]
        while i <= len(rank):
            tree[i] += 1
            i += i & -i
    return count


data = sys.stdin.read().split()
print(inversions(list(map(int, data[1:]))))
