def is_prime(number):
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True


n = int(input())
count = total = 0
for number in range(2, n + 1):
    if is_prime(number):
        count += 1
        total += number
print(count, total)
