#include <algorithm>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

int main() {
    std::string first, second;
    std::cin >> first >> second;
    int n = first.size(), m = second.size();
    std::vector<int> above(m + 1), row(m + 1);
    std::iota(above.begin(), above.end(), 0);
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            if (first[i - 1] == second[j - 1])
                row[j] = above[j - 1];
            else
                row[j] = 1 + std::min({above[j], row[j - 1], above[j - 1]});
        }
        std::swap(above, row);
    }
    std::cout << above[m] << "\n";
}
