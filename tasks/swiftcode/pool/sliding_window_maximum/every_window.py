import sys

n, k, *values = map(int, sys.stdin.read().split())
print(*[max(values[start : start + k]) for start in range(n - k + 1)])
