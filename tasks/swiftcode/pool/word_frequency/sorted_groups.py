import sys
from itertools import groupby

words = sorted(sys.stdin.read().split())
counts = [(-len(list(group)), word) for word, group in groupby(words)]
for count, word in sorted(counts)[:10]:
    print(word, -count)
