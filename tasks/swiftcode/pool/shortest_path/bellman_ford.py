import sys


def distances(n, edges):
    distance = [float("inf")] * (n + 1)
    distance[1] = 0
    for _ in range(n - 1):
        for start, end, length in edges:
            if distance[start] + length < distance[end]:
                distance[end] = distance[start] + length
    return distance[1:]


data = list(map(int, sys.stdin.read().split()))
edges = list(zip(data[2::3], data[3::3], data[4::3], strict=True))
print(*[-1 if d == float("inf") else d for d in distances(data[0], edges)])
