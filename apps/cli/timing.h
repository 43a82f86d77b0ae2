// Times of runs, in milliseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace plimsoll::cli {

class Stopwatch {
 public:
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The value below which a share of the (at least one) times lies, by the nearest rank.
inline double quantile(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  const auto rank = static_cast<size_t>(share * static_cast<double>(times.size()));
  return times[std::min(rank, times.size() - 1)];
}

inline double median(const std::vector<double>& times) {
  return quantile(times, 0.5);
}

}  // namespace plimsoll::cli
