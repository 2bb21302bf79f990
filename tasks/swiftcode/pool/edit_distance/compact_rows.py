from array import array


def edit_distance(first, second):
    rows = [array("i", range(len(second) + 1))]
    for i, letter in enumerate(first, 1):
        above = rows[-1]
        row = array("i", [i])
        left = i
        for j, other in enumerate(second):
            left = above[j] if letter == other else 1 + min(above[j], above[j + 1], left)
            row.append(left)
        rows.append(row)
    return rows[-1][-1]


print(edit_distance(input().strip(), input().strip()))
