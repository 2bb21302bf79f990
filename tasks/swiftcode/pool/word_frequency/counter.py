import sys
from collections import Counter

counts = Counter(sys.stdin.read().split())
for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]:
    print(word, count)
