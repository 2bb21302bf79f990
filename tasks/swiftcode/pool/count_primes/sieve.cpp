#include <iostream>
#include <vector>

int main() {
    int n;
    std::cin >> n;
    std::vector<char> composite(n + 1);
    long long count = 0, sum = 0;
    for (long long number = 2; number <= n; number++) {
        if (composite[number]) continue;
        count++;
        sum += number;
        for (long long multiple = number * number; multiple <= n; multiple += number) composite[multiple] = 1;
    }
    std::cout << count << " " << sum << "\n";
}
