#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    std::vector<std::pair<int, std::string>> counts;  // negative, so that the most frequent come first
    std::string word;
    while (std::cin >> word) {
        size_t i = 0;
        while (i < counts.size() && counts[i].second != word) i++;
        if (i == counts.size()) counts.push_back({0, word});
        counts[i].first--;
    }
    std::sort(counts.begin(), counts.end());
    for (size_t i = 0; i < counts.size() && i < 10; i++) std::cout << counts[i].second << " " << -counts[i].first << "\n";
}
