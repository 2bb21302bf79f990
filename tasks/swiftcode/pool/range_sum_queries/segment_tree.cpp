#include <iostream>
#include <vector>

long long query(const std::vector<long long>& tree, int node, int begin, int end, int first, int last) {
    if (last < begin || end < first) return 0;
    if (first <= begin && end <= last) return tree[node];
    int middle = (begin + end) / 2;
    return query(tree, 2 * node, begin, middle, first, last) + query(tree, 2 * node + 1, middle + 1, end, first, last);
}

long long build(std::vector<long long>& tree, const std::vector<long long>& values, int node, int begin, int end) {
    if (begin == end) return tree[node] = values[begin - 1];
    int middle = (begin + end) / 2;
    return tree[node] = build(tree, values, 2 * node, begin, middle) + build(tree, values, 2 * node + 1, middle + 1, end);
}

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, q;
    std::cin >> n >> q;
    std::vector<long long> values(n), tree(4 * n);
    for (auto& value : values) std::cin >> value;
    build(tree, values, 1, 1, n);
    while (q--) {
        int first, last;
        std::cin >> first >> last;
        std::cout << query(tree, 1, 1, n, first, last) << "\n";
    }
}
