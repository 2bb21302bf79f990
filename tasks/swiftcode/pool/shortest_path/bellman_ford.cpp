#include <iostream>
#include <vector>

struct Edge {
    int start, end;
    long long length;
};

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    const long long infinity = 1LL << 60;
    int n, m;
    std::cin >> n >> m;
    std::vector<Edge> edges(m);
    for (auto& edge : edges) std::cin >> edge.start >> edge.end >> edge.length;
    std::vector<long long> distance(n + 1, infinity);
    distance[1] = 0;
    for (int round = 1; round < n; round++)
        for (const auto& edge : edges)
            if (distance[edge.start] + edge.length < distance[edge.end])
                distance[edge.end] = distance[edge.start] + edge.length;
    for (int node = 1; node <= n; node++)
        std::cout << (distance[node] >= infinity ? -1 : distance[node]) << (node < n ? ' ' : '\n');
}
