import sys


def largest_sum(matrix):
    best = matrix[0][0]
    for top in range(len(matrix)):
        sums = [0] * len(matrix[0])
        for row in matrix[top:]:
            sums = [total + value for total, value in zip(sums, row, strict=True)]
            for left in range(len(sums)):
                total = 0
                for value in sums[left:]:
                    total += value
                    if total > best:
                        best = total
    return best


data = list(map(int, sys.stdin.read().split()))
rows, columns = data[:2]
print(largest_sum([data[2 + i * columns : 2 + (i + 1) * columns] for i in range(rows)]))
