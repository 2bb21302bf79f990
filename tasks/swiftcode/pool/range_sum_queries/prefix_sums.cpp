#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, q;
    std::cin >> n >> q;
    std::vector<long long> prefix(n + 1);
    for (int i = 1; i <= n; i++) {
        std::cin >> prefix[i];
        prefix[i] += prefix[i - 1];
    }
    while (q--) {
        int first, last;
        std::cin >> first >> last;
        std::cout << prefix[last] - prefix[first - 1] << "\n";
    }
}
