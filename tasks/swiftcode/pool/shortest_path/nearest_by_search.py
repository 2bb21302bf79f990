import sys


def distances(n, edges):
    neighbours = [[] for _ in range(n + 1)]
    for start, end, length in edges:
        neighbours[start].append((end, length))
    distance = [float("inf")] * (n + 1)
    distance[1] = 0
    unvisited = set(range(1, n + 1))
    while unvisited:
        node = min(unvisited, key=lambda i: distance[i])
        unvisited.remove(node)
        for end, length in neighbours[node]:
            if distance[node] + length < distance[end]:
                distance[end] = distance[node] + length
    return distance[1:]


data = list(map(int, sys.stdin.read().split()))
edges = list(zip(data[2::3], data[3::3], data[4::3], strict=True))
print(*[-1 if d == float("inf") else d for d in distances(data[0], edges)])
