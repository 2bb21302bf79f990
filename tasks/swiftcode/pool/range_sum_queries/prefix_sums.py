import sys
from itertools import accumulate

data = list(map(int, sys.stdin.read().split()))
n, q = data[:2]
prefix = list(accumulate(data[2 : n + 2], initial=0))
queries = data[n + 2 :]
sums = [prefix[last] - prefix[first - 1] for first, last in zip(queries[::2], queries[1::2], strict=True)]
print("\n".join(map(str, sums)))
