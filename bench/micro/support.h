// What the micro benchmarks share: the instruction set, memory, clocks, and the roofs.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <span>

#include "kernels/peak.h"

namespace plimsoll::micro {

struct Buffer {
  explicit Buffer(size_t bytes)
      : data(static_cast<float*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)), &std::free) {
    for (size_t i = 0; i < bytes / sizeof(float); ++i) data.get()[i] = static_cast<float>(i % 13) * 0.01f;
  }
  float* get() const { return data.get(); }
  std::unique_ptr<float, decltype(&std::free)> data;
};

inline size_t floats(int64_t count) {
  return static_cast<size_t>(count) * sizeof(float);
}

// Time of this thread alone: other processes then spoil fewer calls.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename F>
double best_seconds(benchmark::State& state, F&& call) {
  double best = 1e9;
  for (auto _ : state) {
    const double start = thread_seconds();
    call();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

// Arithmetic: GFLOP/s of the fastest call, and its share of the multiply-add peak measured around it.
template <typename F>
void measure_arithmetic(benchmark::State& state, double flops, F&& call) {
  static double peak = 0;  // of the whole run: the clock wanders between two steps
  peak = std::max(peak, kernels::fma_peak());
  const double best = best_seconds(state, call);
  peak = std::max(peak, kernels::fma_peak());
  state.counters["GFLOPs"] = flops / best * 1e-9;
  state.counters["peak"] = peak;
  state.counters["share"] = flops / best * 1e-9 / peak;
  state.counters["us"] = best * 1e6;
}

// Ours beside theirs, call by call in turns: GFLOP/s of the fastest call of each, ours over theirs, and our
// share of the peak.
template <typename Ours, typename Theirs>
void compare_arithmetic(benchmark::State& state, double flops, Ours&& ours, Theirs&& theirs) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](auto& call) {
    const auto start = Clock::now();
    call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double our_best = 1e9, their_best = 1e9;
  for (auto _ : state) {
    our_best = std::min(our_best, seconds(ours));
    their_best = std::min(their_best, seconds(theirs));
  }
  state.counters["ours"] = flops / our_best * 1e-9;
  state.counters["share"] = flops / our_best * 1e-9 / kernels::fma_peak();
  state.counters["onednn"] = flops / their_best * 1e-9;
  state.counters["ratio"] = their_best / our_best;
  state.counters["us"] = our_best * 1e6;
}

// Movement: GB/s read and written by the fastest call, and its share of the rate at which a core reads as
// many bytes again and again, be they in a cache or in memory.
template <typename F>
void measure_movement(benchmark::State& state, int64_t bytes, int64_t elements, F&& call) {
  const Buffer same(static_cast<size_t>(bytes));
  const double peak = kernels::read_peak({same.get(), static_cast<size_t>(bytes) / sizeof(float)});
  const double best = best_seconds(state, call);
  const double rate = static_cast<double>(bytes) / best * 1e-9;
  state.counters["GBs"] = rate;
  state.counters["peak"] = peak;
  state.counters["share"] = rate / peak;
  state.counters["ns_element"] = best * 1e9 / static_cast<double>(elements);
  state.counters["us"] = best * 1e6;
}

}  // namespace plimsoll::micro
