def count_words(text: str) -> int:
    count = 0
    previous = " "
    for character in text:
        if character != " " and previous == " ":
            count += 1
        previous = character
    return count
