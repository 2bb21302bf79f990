import sys

words = sys.stdin.read().split()
counts = [(-words.count(word), word) for word in set(words)]
for count, word in sorted(counts)[:10]:
    print(word, -count)
