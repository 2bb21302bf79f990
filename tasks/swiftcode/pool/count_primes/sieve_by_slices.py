from itertools import compress
from math import isqrt


def primes_up_to(n):
    prime = bytearray([1]) * (n + 1)
    prime[:2] = bytes(2)
    for number in range(2, isqrt(n) + 1):
        if prime[number]:
            prime[number * number :: number] = bytes(len(range(number * number, n + 1, number)))
    return list(compress(range(n + 1), prime))


primes = primes_up_to(int(input()))
print(len(primes), sum(primes))
