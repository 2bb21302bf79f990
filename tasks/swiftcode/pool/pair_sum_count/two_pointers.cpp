#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n;
    long long target;
    std::cin >> n >> target;
    std::vector<long long> values(n);
    for (auto& value : values) std::cin >> value;
    std::sort(values.begin(), values.end());
    long long count = 0;
    int low = 0, high = n - 1;
    while (low < high) {
        long long sum = values[low] + values[high];
        if (sum < target) {
            low++;
        } else if (sum > target) {
            high--;
        } else if (values[low] == values[high]) {
            long long equal = high - low + 1;
            count += equal * (equal - 1) / 2;
            break;
        } else {
            long long left = 1, right = 1;
            while (values[low + left] == values[low]) left++;
            while (values[high - right] == values[high]) right++;
            count += left * right;
            low += left;
            high -= right;
        }
    }
    std::cout << count << "\n";
}
