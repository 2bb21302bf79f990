import sys


def best(items, capacity):
    table = [[0] * (capacity + 1) for _ in range(len(items) + 1)]
    for i, (weight, value) in enumerate(items, 1):
        for room in range(capacity + 1):
            table[i][room] = table[i - 1][room]
            if weight <= room:
                table[i][room] = max(table[i][room], table[i - 1][room - weight] + value)
    return table[-1][-1]


data = list(map(int, sys.stdin.read().split()))
print(best(list(zip(data[2::2], data[3::2], strict=True)), data[1]))
