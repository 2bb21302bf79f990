#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, q;
    std::cin >> n >> q;
    std::vector<long long> values(n);
    for (auto& value : values) std::cin >> value;
    while (q--) {
        int first, last;
        std::cin >> first >> last;
        long long sum = 0;
        for (int i = first - 1; i < last; i++) sum += values[i];
        std::cout << sum << "\n";
    }
}
