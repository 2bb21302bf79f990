#include <iostream>
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
    std::vector<char> visited(n + 1);
    distance[1] = 0;
    while (true) {
        int nearest = 0;
        for (int node = 1; node <= n; node++)
            if (!visited[node] && distance[node] < (nearest ? distance[nearest] : infinity)) nearest = node;
        if (nearest == 0) break;
        visited[nearest] = true;
        for (auto [end, length] : neighbours[nearest])
            if (distance[nearest] + length < distance[end]) distance[end] = distance[nearest] + length;
    }
    for (int node = 1; node <= n; node++)
        std::cout << (distance[node] == infinity ? -1 : distance[node]) << (node < n ? ' ' : '\n');
}
