#include <iostream>
#include <set>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, value;
    std::cin >> n;
    std::set<int> tails;
    while (std::cin >> value) {
        auto next = tails.lower_bound(value);
        if (next != tails.end()) tails.erase(next);
        tails.insert(value);
    }
    std::cout << tails.size() << "\n";
}
