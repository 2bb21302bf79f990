def edit_distance(first, second):
    table = [list(range(len(second) + 1))]
    for i, letter in enumerate(first, 1):
        above = table[-1]
        row = [i]
        left = i
        for j, other in enumerate(second):
            left = above[j] if letter == other else 1 + min(above[j], above[j + 1], left)
            row.append(left)
        table.append(row)
    return table[-1][-1]


print(edit_distance(input().strip(), input().strip()))
