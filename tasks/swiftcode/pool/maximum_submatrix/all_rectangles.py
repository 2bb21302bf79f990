import sys


def largest_sum(matrix):
    rows, columns = len(matrix), len(matrix[0])
    corner = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows):
        for j in range(columns):
            corner[i + 1][j + 1] = matrix[i][j] + corner[i][j + 1] + corner[i + 1][j] - corner[i][j]
    best = matrix[0][0]
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    total = corner[bottom][right] - corner[top][right] - corner[bottom][left] + corner[top][left]
                    best = max(best, total)
    return best


data = list(map(int, sys.stdin.read().split()))
rows, columns = data[:2]
print(largest_sum([data[2 + i * columns : 2 + (i + 1) * columns] for i in range(rows)]))
