import sys
from collections import deque


def maxima(values, k):
    queue = deque()  # positions whose values fall from the left to the right
    result = []
    for i, value in enumerate(values):
        while queue and values[queue[-1]] <= value:
            queue.pop()
        queue.append(i)
        if queue[0] == i - k:
            queue.popleft()
        if i >= k - 1:
            result.append(values[queue[0]])
    return result


n, k, *values = map(int, sys.stdin.read().split())
print(*maxima(values, k))
