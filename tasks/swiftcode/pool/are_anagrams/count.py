def are_anagrams(first: str, second: str) -> bool:
    if len(first) != len(second):
        return False
    return all(first.count(letter) == second.count(letter) for letter in set(first))
