#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

int main() {
    std::string first, second;
    std::cin >> first >> second;
    int n = first.size(), m = second.size();
    std::vector<std::vector<int>> table(n + 1, std::vector<int>(m + 1));
    for (int i = 0; i <= n; i++) table[i][0] = i;
    for (int j = 0; j <= m; j++) table[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            if (first[i - 1] == second[j - 1])
                table[i][j] = table[i - 1][j - 1];
            else
                table[i][j] = 1 + std::min({table[i - 1][j], table[i][j - 1], table[i - 1][j - 1]});
        }
    }
    std::cout << table[n][m] << "\n";
}
