import sys
from heapq import heappop, heappush


def maxima(values, k):
    heap = []  # negative, so that the largest value comes first
    result = []
    for i, value in enumerate(values):
        heappush(heap, (-value, i))
        while heap[0][1] <= i - k:
            heappop(heap)
        if i >= k - 1:
            result.append(-heap[0][0])
    return result


n, k, *values = map(int, sys.stdin.read().split())
print(*maxima(values, k))
