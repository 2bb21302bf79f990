#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n;
    std::cin >> n;
    std::vector<int> values(n), length(n, 1);
    for (auto& value : values) std::cin >> value;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (values[j] < values[i]) length[i] = std::max(length[i], length[j] + 1);
    std::cout << *std::max_element(length.begin(), length.end()) << "\n";
}
