#include <algorithm>
#include <iostream>
#include <unordered_map>
#include <vector>

int n, capacity;
std::vector<int> weights, values;
std::unordered_map<long long, long long> known;

long long best(int i, int room) {
    if (i == n) return 0;
    long long key = i * (capacity + 1LL) + room;
    auto found = known.find(key);
    if (found != known.end()) return found->second;
    long long result = best(i + 1, room);
    if (weights[i] <= room) result = std::max(result, values[i] + best(i + 1, room - weights[i]));
    return known[key] = result;
}

int main() {
    std::cin >> n >> capacity;
    weights.resize(n);
    values.resize(n);
    for (int i = 0; i < n; i++) std::cin >> weights[i] >> values[i];
    std::cout << best(0, capacity) << "\n";
}
