#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int rows, columns;
    std::cin >> rows >> columns;
    std::vector<std::vector<long long>> matrix(rows, std::vector<long long>(columns));
    for (auto& row : matrix)
        for (auto& value : row) std::cin >> value;
    long long best = matrix[0][0];
    for (int top = 0; top < rows; top++) {
        std::vector<long long> sums(columns);
        for (int bottom = top; bottom < rows; bottom++) {
            long long ending_here = 0;
            for (int j = 0; j < columns; j++) {
                sums[j] += matrix[bottom][j];
                ending_here = std::max(ending_here, 0LL) + sums[j];
                best = std::max(best, ending_here);
            }
        }
    }
    std::cout << best << "\n";
}
