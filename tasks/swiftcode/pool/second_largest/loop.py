def second_largest(numbers: list[int]) -> int:
    largest = second = float("-inf")
    for number in numbers:
        if number > largest:
            largest, second = number, largest
        elif largest > number > second:
            second = number
    return second
