import sys

words = []
counts = []
for word in sys.stdin.read().split():
    if word in words:
        counts[words.index(word)] += 1
    else:
        words.append(word)
        counts.append(1)
order = sorted(range(len(words)), key=lambda i: (-counts[i], words[i]))
for i in order[:10]:
    print(words[i], counts[i])
