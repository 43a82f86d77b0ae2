// How the losses over classes and their gradients walk through scores (N, C, d1, ...).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/unary.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {

enum class LossReduction : uint8_t { kNone, kMean, kSum };

struct LossAttrs {
  LossReduction reduction = LossReduction::kMean;
  bool ignores = false;
  int64_t ignored = 0;
};

inline constexpr size_t kScores = 0, kTargets = 1, kWeights = 2;
inline constexpr int64_t kStrip = 64;   // samples handled together
inline constexpr int64_t kChunks = 64;  // partial sums: their number does not depend on the threads
inline constexpr int64_t kBlock = 256;  // classes read at once

// Samples that lie side by side: rows of classes, or columns with the classes `class_stride` apart.
struct Samples {
  int64_t classes, inner, count, strips, strips_per_image;
  int64_t first(int64_t strip) const {
    return inner == 1 ? strip * kStrip : strip / strips_per_image * inner + strip % strips_per_image * kStrip;
  }
  int64_t size(int64_t strip) const {
    return inner == 1 ? std::min(kStrip, count - strip * kStrip)
                      : std::min(kStrip, inner - strip % strips_per_image * kStrip);
  }
  int64_t offset(int64_t sample) const {
    return inner == 1 ? sample * classes : sample / inner * classes * inner + sample % inner;
  }
};

inline Samples samples_of(const TensorView& scores) {
  Samples s;
  s.classes = scores.dims[1];
  s.inner = stride_of(scores.dims, 1);
  s.count = scores.dims[0] * s.inner;
  s.strips_per_image = (s.inner + kStrip - 1) / kStrip;
  s.strips = s.inner == 1 ? (s.count + kStrip - 1) / kStrip : scores.dims[0] * s.strips_per_image;
  return s;
}

inline void exp_block(float* x, int64_t count) {
  kernels::unary_f32({kernels::UnaryKind::kExp}, x, x, count);
}
inline void exp_block(double* x, int64_t count) {
  kernels::unary_f64({kernels::UnaryKind::kExp}, x, x, count);
}

// The largest score of a sample, and the logarithm of the sum of exponentials of distances to it.
template <typename W>
struct Normalizer {
  W largest[kStrip], log_sum[kStrip];
};

template <typename T, typename W>
void normalize_row(const T* x, int64_t classes, W& largest, W& log_sum) {
  W block[kBlock];
  largest = -std::numeric_limits<W>::infinity();
  double sum = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t start = 0; start < classes; start += kBlock) {
      const int64_t count = std::min(kBlock, classes - start);
      widen(x + start, block, count);
      if (pass == 0) {
        for (int64_t i = 0; i < count; ++i) largest = std::max(largest, block[i]);
        continue;
      }
      for (int64_t i = 0; i < count; ++i) block[i] -= largest;
      exp_block(block, count);
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(block[i]);
    }
  }
  log_sum = static_cast<W>(std::log(sum));
}

template <typename T, typename W>
void normalize_columns(const T* x, int64_t classes, int64_t stride, int64_t count, Normalizer<W>& n) {
  W block[kStrip];
  double sum[kStrip] = {};
  std::fill_n(n.largest, count, -std::numeric_limits<W>::infinity());
  for (int64_t k = 0; k < classes; ++k) {
    widen(x + k * stride, block, count);
    for (int64_t i = 0; i < count; ++i) n.largest[i] = std::max(n.largest[i], block[i]);
  }
  for (int64_t k = 0; k < classes; ++k) {
    widen(x + k * stride, block, count);
    for (int64_t i = 0; i < count; ++i) block[i] -= n.largest[i];
    exp_block(block, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<double>(block[i]);
  }
  for (int64_t i = 0; i < count; ++i) n.log_sum[i] = static_cast<W>(std::log(sum[i]));
}

template <typename T, typename W>
void normalize_strip(const Samples& s, int64_t strip, const T* x, Normalizer<W>& n) {
  const int64_t first = s.first(strip), count = s.size(strip);
  if (s.inner > 1) return normalize_columns(x + s.offset(first), s.classes, s.inner, count, n);
  for (int64_t i = 0; i < count; ++i)
    normalize_row(x + s.offset(first + i), s.classes, n.largest[i], n.log_sum[i]);
}

}  // namespace plimsoll
