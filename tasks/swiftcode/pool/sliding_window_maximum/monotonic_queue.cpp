#include <deque>
#include <iostream>
#include <vector>

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    int n, k;
    std::cin >> n >> k;
    std::vector<int> values(n);
    std::deque<int> queue;  // positions whose values fall from the left to the right
    for (int i = 0; i < n; i++) {
        std::cin >> values[i];
        while (!queue.empty() && values[queue.back()] <= values[i]) queue.pop_back();
        queue.push_back(i);
        if (queue.front() == i - k) queue.pop_front();
        if (i >= k - 1) std::cout << values[queue.front()] << " ";
    }
    std::cout << "\n";
}
