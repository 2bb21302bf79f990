import sys


def largest_sum(matrix):
    best = matrix[0][0]
    for top in range(len(matrix)):
        sums = [0] * len(matrix[0])
        for row in matrix[top:]:
            sums = [total + value for total, value in zip(sums, row, strict=True)]
            ending_here = 0
            for value in sums:
                ending_here = ending_here + value if ending_here > 0 else value
                if ending_here > best:
                    best = ending_here
    return best


data = list(map(int, sys.stdin.read().split()))
rows, columns = data[:2]
print(largest_sum([data[2 + i * columns : 2 + (i + 1) * columns] for i in range(rows)]))
