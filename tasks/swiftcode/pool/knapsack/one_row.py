import sys


def best(items, capacity):
    row = [0] * (capacity + 1)
    for weight, value in items:
        for room in range(capacity, weight - 1, -1):
            with_item = row[room - weight] + value
            if with_item > row[room]:
                row[room] = with_item
    return row[-1]


data = list(map(int, sys.stdin.read().split()))
print(best(list(zip(data[2::2], data[3::2], strict=True)), data[1]))
