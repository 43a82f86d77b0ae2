// What BatchNormalization and its gradient share.
#pragma once

#include <algorithm>
#include <cmath>

#include "graph/op_def.h"
#include "kernels/channel_sums.h"
#include "kernels/parallel.h"

namespace plimsoll {

// [outer, channels, inner]
struct ChannelLayout {
  int64_t outer = 1, channels = 1, inner = 1;
  int64_t elements() const { return outer * channels * inner; }
};

// `per_channel`: statistics are of channels; otherwise of every element of a sample.
inline ChannelLayout channel_layout(std::span<const int64_t> dims, bool channels_last, bool per_channel) {
  if (dims.size() < 2) return {dims[0], 1, 1};
  const size_t axis = channels_last ? dims.size() - 1 : 1;
  ChannelLayout s{dims[0], dims[axis], 1};
  for (size_t i = 1; i < dims.size(); ++i) {
    if (i != axis) s.inner *= dims[i];
  }
  if (!per_channel) return {s.outer, s.channels * s.inner, 1};
  if (channels_last) return {s.outer * s.inner, s.channels, 1};
  return s;
}

struct NormStatistics {
  double mean = 0, variance = 0;
};
// y = factor * x + term
struct NormFactors {
  double factor = 1, term = 0;
};
inline NormFactors norm_factors(double scale, double bias, const NormStatistics& s, float epsilon) {
  const double factor = scale / std::sqrt(s.variance + double{epsilon});
  return {factor, bias - s.mean * factor};
}

// Parts whose sums are made apart and then put together: their number does not depend on the threads.
inline constexpr int64_t kMostStatisticsParts = 16;
inline int64_t statistics_parts(const ChannelLayout& s) {
  constexpr int64_t kPartElements = 1 << 16;
  return std::clamp<int64_t>(std::min(s.elements() / kPartElements, s.outer), 1, kMostStatisticsParts);
}
// Numbers of scratch per channel.
inline constexpr int64_t kStatisticsNumbers = 8 * kMostStatisticsParts;

// The sums lie in `scratch`.
template <typename T>
kernels::ChannelSums<kernels::LaneOf<T>> batch_sums(const T* x, const T* dy, const ChannelLayout& s,
                                                    kernels::LaneOf<T>* scratch, int threads) {
  using W = kernels::LaneOf<T>;
  const int64_t parts = statistics_parts(s), c = s.channels;
  kernels::ChannelSums<W> sums[kMostStatisticsParts];
  kernels::parallel_for(threads, parts, [&](int64_t part) {
    W* own = scratch + part * 8 * c;
    kernels::ChannelSums<W>& to = sums[part];
    to = {own, own + c};
    if (dy != nullptr) to.dy = own + 2 * c, to.product = own + 3 * c;
    const int64_t begin = s.outer * part / parts, end = s.outer * (part + 1) / parts;
    const int64_t at = begin * c * s.inner;
    kernels::channel_sums(x + at, dy == nullptr ? nullptr : dy + at, end - begin, c, s.inner, to,
                          own + 4 * c);
  });
  for (int64_t part = 1; part < parts; ++part) sums[0].merge(sums[part], c);
  return sums[0];
}

}  // namespace plimsoll
