def primes_up_to(n):
    prime = [True] * (n + 1)
    prime[0] = prime[1] = False
    for number in range(2, int(n**0.5) + 1):
        if prime[number]:
            for multiple in range(number * number, n + 1, number):
                prime[multiple] = False
    return [number for number in range(n + 1) if prime[number]]


primes = primes_up_to(int(input()))
print(len(primes), sum(primes))
