#include "kernels/choose.h"

#include <vector>

#include "kernels/each_target.h"

namespace plimsoll {
namespace {

using Dims = std::vector<int64_t>;

int64_t elements(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

// The element of an operand at the place `at` of the output.
int64_t place(const Dims& output, const Dims& operand, int64_t at) {
  int64_t result = 0, stride = 1;
  for (size_t i = output.size(), j = operand.size(); i-- > 0; at /= output[i]) {
    if (j == 0) continue;
    --j;
    if (operand[j] != 1) result += at % output[i] * stride;
    stride *= operand[j];
  }
  return result;
}

void check(const Dims& y, const Dims& condition, const Dims& a, const Dims& b) {
  std::vector<uint8_t> chosen;
  std::vector<uint32_t> of_a, of_b, found(static_cast<size_t>(elements(y)));
  for (int64_t i = 0; i < elements(condition); ++i)
    chosen.push_back(static_cast<uint8_t>(i * i % 3 == 1 ? i % 200 + 1 : 0));
  for (int64_t i = 0; i < elements(a); ++i) of_a.push_back(static_cast<uint32_t>(i));
  for (int64_t i = 0; i < elements(b); ++i) of_b.push_back(static_cast<uint32_t>(-i - 1));
  kernels::Broadcast(y, {condition, a, b}).for_each(1, [&](const kernels::BroadcastBlock& block) {
    kernels::choose(block, chosen.data(), of_a.data(), of_b.data(), found.data());
  });
  for (int64_t i = 0; i < elements(y); ++i) {
    const bool first = chosen[static_cast<size_t>(place(y, condition, i))] != 0;
    const uint32_t expected =
        first ? of_a[static_cast<size_t>(place(y, a, i))] : of_b[static_cast<size_t>(place(y, b, i))];
    ASSERT_EQ(found[static_cast<size_t>(i)], expected) << i;
  }
}

TEST(Choose, WithEveryKindOfOperand) {
  for_each_target([] {
    check({67}, {67}, {67}, {67});
    check({3, 5, 37}, {5, 37}, {1}, {3, 5, 37});  // a mask of attention
    check({3, 5, 37}, {5, 37}, {3, 5, 37}, {1});  // its gradient
    check({4, 33}, {4, 1}, {4, 33}, {33});        // a condition for each row
    check({2, 3, 4, 5}, {2, 1, 4, 1}, {3, 1, 5}, {1});
    check({5, 3}, {5, 3}, {1, 3}, {5, 1});
  });
}

}  // namespace
}  // namespace plimsoll
