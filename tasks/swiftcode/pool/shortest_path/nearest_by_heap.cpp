#include <functional>
#include <iostream>
#include <queue>
#include <utility>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    const long long infinity = 1LL << 60;
    int n, m;
    std::cin >> n >> m;
    std::vector<std::vector<std::pair<int, int>>> neighbours(n + 1);
    for (int i = 0; i < m; i++) {
        int start, end, length;
        std::cin >> start >> end >> length;
        neighbours[start].push_back({end, length});
    }
    std::vector<long long> distance(n + 1, infinity);
    distance[1] = 0;
    using Entry = std::pair<long long, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
    queue.push({0, 1});
    while (!queue.empty()) {
        auto [so_far, node] = queue.top();
        queue.pop();
        if (so_far > distance[node]) continue;
        for (auto [end, length] : neighbours[node]) {
            if (so_far + length < distance[end]) {
                distance[end] = so_far + length;
                queue.push({distance[end], end});
            }
        }
    }
    for (int node = 1; node <= n; node++)
        std::cout << (distance[node] == infinity ? -1 : distance[node]) << (node < n ? ' ' : '\n');
}
