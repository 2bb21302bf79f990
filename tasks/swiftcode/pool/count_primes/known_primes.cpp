#include <iostream>
#include <vector>

int main() {
    int n;
    std::cin >> n;
    std::vector<int> primes;
    long long sum = 0;
    for (int number = 2; number <= n; number++) {
        bool is_prime = true;
        for (int prime : primes) {
            if (prime * prime > number) break;
            if (number % prime == 0) {
                is_prime = false;
                break;
            }
        }
        if (is_prime) {
            primes.push_back(number);
            sum += number;
        }
    }
    std::cout << primes.size() << " " << sum << "\n";
}
