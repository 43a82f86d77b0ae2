#include "micro/fma_peak.h"

#include <algorithm>
#include <chrono>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "micro/fma_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kChains = 12;
constexpr int kSteps = 20000;

// Returns the multiply-adds done, 2 operations each.
double run_chains(float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.9999f);
  const auto y = hn::Set(d, sink[0]);
  hn::Vec<decltype(d)> acc[kChains];
  for (auto& chain : acc) chain = y;
  for (int step = 0; step < kSteps; ++step) {
    HWY_UNROLL(12)
    for (int i = 0; i < kChains; ++i) acc[i] = hn::MulAdd(acc[i], x, y);
  }
  auto sum = acc[0];
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, acc[i]);
  sink[0] = 1e-20f * hn::GetLane(hn::SumOfLanes(d, sum));
  return 1.0 * kChains * kSteps * static_cast<double>(hn::Lanes(d));
}

}  // namespace plimsoll::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::bench {
HWY_EXPORT(run_chains);

double fma_peak() {
  using Clock = std::chrono::steady_clock;
  float sink = 0;
  double best = 0;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    const double count = HWY_DYNAMIC_DISPATCH(run_chains)(&sink);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2e-9 * count / seconds);
  }
  return best;
}

}  // namespace plimsoll::bench
#endif  // HWY_ONCE
