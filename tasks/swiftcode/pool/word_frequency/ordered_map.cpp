#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    std::map<std::string, int> frequency;
    std::string word;
    while (std::cin >> word) frequency[word]++;
    std::vector<std::pair<int, std::string>> counts;
    for (const auto& [text, count] : frequency) counts.push_back({-count, text});
    std::sort(counts.begin(), counts.end());
    for (size_t i = 0; i < counts.size() && i < 10; i++) std::cout << counts[i].second << " " << -counts[i].first << "\n";
}
