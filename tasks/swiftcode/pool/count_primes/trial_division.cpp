#include <iostream>

bool is_prime(int number) {
    for (int divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0) return false;
    return number > 1;
}

int main() {
    int n;
    std::cin >> n;
    long long count = 0, sum = 0;
    for (int number = 2; number <= n; number++) {
        if (is_prime(number)) {
            count++;
            sum += number;
        }
    }
    std::cout << count << " " << sum << "\n";
}
