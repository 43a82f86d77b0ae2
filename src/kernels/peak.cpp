#include "kernels/peak.h"

#include <algorithm>
#include <chrono>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
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

// Eight sums, so that none waits for another.
float add_up(const float* data, size_t count) {
  const hn::ScalableTag<float> d;
  constexpr size_t kSums = 8;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kSums];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (size_t i = 0; i + kSums * lanes <= count; i += kSums * lanes) {
    HWY_UNROLL(8)
    for (size_t k = 0; k < kSums; ++k) sums[k] = hn::Add(sums[k], hn::LoadU(d, data + i + k * lanes));
  }
  auto all = sums[0];
  for (size_t k = 1; k < kSums; ++k) all = hn::Add(all, sums[k]);
  return hn::GetLane(hn::SumOfLanes(d, all));
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(run_chains);
HWY_EXPORT(add_up);

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

double read_peak(std::span<const float> data) {
  using Clock = std::chrono::steady_clock;
  // As often as a clock needs to tell the time.
  constexpr size_t kEnough = 1 << 20;
  const size_t passes = std::max<size_t>(1, kEnough / std::max<size_t>(1, data.size_bytes()));
  double best = 0;
  volatile float sink = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    for (size_t pass = 0; pass < passes; ++pass)
      sink = HWY_DYNAMIC_DISPATCH(add_up)(data.data(), data.size());
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 1e-9 * static_cast<double>(passes * data.size_bytes()) / seconds);
  }
  (void)sink;
  return best;
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
