#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    int n, capacity;
    std::cin >> n >> capacity;
    std::vector<std::vector<long long>> table(n + 1, std::vector<long long>(capacity + 1));
    for (int i = 1; i <= n; i++) {
        int weight, value;
        std::cin >> weight >> value;
        for (int room = 0; room <= capacity; room++) {
            table[i][room] = table[i - 1][room];
            if (weight <= room) table[i][room] = std::max(table[i][room], table[i - 1][room - weight] + value);
        }
    }
    std::cout << table[n][capacity] << "\n";
}
