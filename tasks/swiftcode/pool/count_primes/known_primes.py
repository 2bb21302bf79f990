def primes_up_to(n):
    primes = []
    for number in range(2, n + 1):
        for prime in primes:
            if prime * prime > number:
                primes.append(number)
                break
            if number % prime == 0:
                break
        else:
            primes.append(number)
    return primes


primes = primes_up_to(int(input()))
print(len(primes), sum(primes))
