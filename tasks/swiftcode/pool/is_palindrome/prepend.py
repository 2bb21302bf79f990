def is_palindrome(text: str) -> bool:
    backwards = ""
    for character in text:
        backwards = character + backwards
    return backwards == text
