import sys
from heapq import heappop, heappush


def distances(n, edges):
    neighbours = [[] for _ in range(n + 1)]
    for start, end, length in edges:
        neighbours[start].append((end, length))
    distance = [float("inf")] * (n + 1)
    distance[1] = 0
    heap = [(0, 1)]
    while heap:
        so_far, node = heappop(heap)
        if so_far > distance[node]:
            continue
        for end, length in neighbours[node]:
            if so_far + length < distance[end]:
                distance[end] = so_far + length
                heappush(heap, (distance[end], end))
    return distance[1:]


data = list(map(int, sys.stdin.read().split()))
edges = list(zip(data[2::3], data[3::3], data[4::3], strict=True))
print(*[-1 if d == float("inf") else d for d in distances(data[0], edges)])
