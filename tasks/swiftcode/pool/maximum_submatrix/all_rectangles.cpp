#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int rows, columns;
    std::cin >> rows >> columns;
    std::vector<std::vector<long long>> corner(rows + 1, std::vector<long long>(columns + 1));
    for (int i = 1; i <= rows; i++) {
        for (int j = 1; j <= columns; j++) {
            std::cin >> corner[i][j];
            corner[i][j] += corner[i - 1][j] + corner[i][j - 1] - corner[i - 1][j - 1];
        }
    }
    long long best = corner[1][1];
    for (int top = 0; top < rows; top++)
        for (int bottom = top + 1; bottom <= rows; bottom++)
            for (int left = 0; left < columns; left++)
                for (int right = left + 1; right <= columns; right++)
                    best = std::max(best, corner[bottom][right] - corner[top][right] - corner[bottom][left] + corner[top][left]);
    std::cout << best << "\n";
}
