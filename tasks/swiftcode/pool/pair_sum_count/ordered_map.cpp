#include <iostream>
#include <map>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n;
    long long target, value, count = 0;
    std::cin >> n >> target;
    std::map<long long, long long> seen;
    while (std::cin >> value) {
        auto found = seen.find(target - value);
        if (found != seen.end()) count += found->second;
        seen[value]++;
    }
    std::cout << count << "\n";
}
