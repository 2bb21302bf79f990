#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, k;
    std::cin >> n >> k;
    std::vector<int> values(n);
    for (auto& value : values) std::cin >> value;
    for (int start = 0; start + k <= n; start++)
        std::cout << *std::max_element(values.begin() + start, values.begin() + start + k) << " ";
    std::cout << "\n";
}
