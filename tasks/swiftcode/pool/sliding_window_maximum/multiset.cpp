#include <iostream>
#include <set>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, k;
    std::cin >> n >> k;
    std::vector<int> values(n);
    std::multiset<int> window;
    for (int i = 0; i < n; i++) {
        std::cin >> values[i];
        window.insert(values[i]);
        if (i >= k) window.erase(window.find(values[i - k]));
        if (i >= k - 1) std::cout << *window.rbegin() << " ";
    }
    std::cout << "\n";
}
