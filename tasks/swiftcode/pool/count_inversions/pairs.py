import sys


def inversions(values):
    count = 0
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] > values[j]:
                count += 1
    return count


data = sys.stdin.read().split()
print(inversions(list(map(int, data[1:]))))
