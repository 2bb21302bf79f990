import sys

data = list(map(int, sys.stdin.read().split()))
n, q = data[:2]
values = data[2 : n + 2]
for i in range(n + 2, len(data), 2):
    print(sum(values[data[i] - 1 : data[i + 1]]))
