#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    int n, capacity;
    std::cin >> n >> capacity;
    std::vector<long long> row(capacity + 1);
    for (int i = 0; i < n; i++) {
        int weight, value;
        std::cin >> weight >> value;
        for (int room = capacity; room >= weight; room--) row[room] = std::max(row[room], row[room - weight] + value);
    }
    std::cout << row[capacity] << "\n";
}
