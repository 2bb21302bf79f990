#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n;
    std::cin >> n;
    std::vector<long long> values(n);
    for (auto& value : values) std::cin >> value;
    std::vector<long long> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    int ranks = sorted.size();
    std::vector<int> tree(ranks + 1);
    long long count = 0;
    for (int seen = 0; seen < n; seen++) {
        int rank = std::lower_bound(sorted.begin(), sorted.end(), values[seen]) - sorted.begin() + 1;
        int smaller_or_equal = 0;
        for (int i = rank; i > 0; i -= i & -i) smaller_or_equal += tree[i];
        count += seen - smaller_or_equal;
        for (int i = rank; i <= ranks; i += i & -i) tree[i]++;
    }
    std::cout << count << "\n";
}
