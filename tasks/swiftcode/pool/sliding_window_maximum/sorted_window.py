import sys
from bisect import bisect_left, insort


def maxima(values, k):
    window = sorted(values[:k])
    result = [window[-1]]
    for i in range(k, len(values)):
        del window[bisect_left(window, values[i - k])]
        insort(window, values[i])
        result.append(window[-1])
    return result


n, k, *values = map(int, sys.stdin.read().split())
print(*maxima(values, k))
