#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, value;
    std::cin >> n;
    std::vector<int> tails;
    while (std::cin >> value) {
        auto next = std::lower_bound(tails.begin(), tails.end(), value);
        if (next == tails.end())
            tails.push_back(value);
        else
            *next = value;
    }
    std::cout << tails.size() << "\n";
}
