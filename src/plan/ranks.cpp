#include "plan/ranks.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::plan {

std::vector<int> Ranks::next() {
  std::vector<std::array<double, 3>> keys;
  for (const Item& item : space_.items) keys.push_back(key(item));
  ++turn_;
  std::vector<int> order(keys.size()), rank(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
  return rank;
}

std::array<double, 3> Ranks::key(const Item& item) {
  const auto noise = [&] {
    // Not a std:: distribution: their sequences differ between standard libraries.
    return turn_ < kKinds ? 1.0 : 1.0 + kNoise * (static_cast<double>(random_()) / 0x7fffffff - 1.0);
  };
  const auto live = space_.live.begin();
  const double busy = static_cast<double>(*std::max_element(live + item.first, live + item.last)) * noise();
  const double lifetime = item.lifetime * noise();
  const double area = lifetime * static_cast<double>(item.size) * noise();
  switch (turn_ % kKinds) {
    case 0:
      return {busy, lifetime, area};
    case 1:
      return {busy, area, lifetime};
    case 2:
      return {lifetime, area, busy};
    default:
      return {area, busy, lifetime};
  }
}

}  // namespace plimsoll::plan
