#include <algorithm>
#include <iostream>
#include <vector>

long long sort_and_count(std::vector<int>& values, std::vector<int>& buffer, int begin, int end) {
    if (end - begin < 2) return 0;
    int middle = begin + (end - begin) / 2;
    long long count = sort_and_count(values, buffer, begin, middle) + sort_and_count(values, buffer, middle, end);
    int i = begin, j = middle, k = begin;
    while (i < middle && j < end) {
        if (values[i] <= values[j]) {
            buffer[k++] = values[i++];
        } else {
            count += middle - i;
            buffer[k++] = values[j++];
        }
    }
    while (i < middle) buffer[k++] = values[i++];
    while (j < end) buffer[k++] = values[j++];
    std::copy(buffer.begin() + begin, buffer.begin() + end, values.begin() + begin);
    return count;
}

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n;
    std::cin >> n;
    std::vector<int> values(n), buffer(n);
    for (auto& value : values) std::cin >> value;
    std::cout << sort_and_count(values, buffer, 0, n) << "\n";
}
