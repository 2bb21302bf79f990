#include <algorithm>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

int n, capacity;
std::vector<int> weights, values;
std::map<std::pair<int, int>, long long> known;

long long best(int i, int room) {
    if (i == n) return 0;
    auto found = known.find({i, room});
    if (found != known.end()) return found->second;
    long long result = best(i + 1, room);
    if (weights[i] <= room) result = std::max(result, values[i] + best(i + 1, room - weights[i]));
    return known[{i, room}] = result;
}

int main() {
    std::cin >> n >> capacity;
    weights.resize(n);
    values.resize(n);
    for (int i = 0; i < n; i++) std::cin >> weights[i] >> values[i];
    std::cout << best(0, capacity) << "\n";
}
