def count_vowels(text: str) -> int:
    return sum(text.count(vowel) for vowel in "aeiou")
