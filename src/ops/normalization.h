// What normalization operators share.
#pragma once

#include <algorithm>

#include "graph/op_def.h"
#include "kernels/normalize.h"
#include "kernels/reduce.h"
#include "ops/float_blocks.h"

namespace plimsoll {

// Throws if the vector input i is known not to have an element per channel.
inline void expect_channels(const InferContext& c, size_t i, Dim channels) {
  c.expect_rank(i, 1, 1);
  if (!c.ranked(i)) return;
  const Dim found = c.dims(i)[0];
  if (found.is_constant() && channels.is_constant() && !(found == channels))
    c.reject("input {}: expected {} elements, one per channel, found {}", i, channels.value(), found.value());
}

// A parameter of these dimensions can be broadcast to X, as far as is known.
inline bool may_broadcast_to(std::span<const Dim> x, std::span<const Dim> parameter) {
  bool fits = parameter.size() <= x.size();
  for (size_t i = 0; fits && i < parameter.size(); ++i) {
    const Dim mine = parameter[i], other = x[x.size() - parameter.size() + i];
    fits = mine == Dim(1) || !mine.is_constant() || !other.is_constant() || mine == other;
  }
  return fits;
}

// Rows of X's last dimension, each with the elements of a broadcast parameter that belong to it.
struct BroadcastWalk {
  std::span<const int64_t> x, parameter;
  // Where those are for the row that starts at element `position` of X.
  int64_t offset(int64_t position) const {
    int64_t result = 0, stride = 1;
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t dim = x[x.size() - 1 - i], at = position % dim;
      position /= dim;
      if (i >= parameter.size()) break;
      const int64_t mine = parameter[parameter.size() - 1 - i];
      if (mine != 1) result += at * stride;
      stride *= mine;
    }
    return result;
  }
  // From one element of such a row to the next.
  int64_t step() const { return parameter.empty() || parameter.back() == 1 ? 0 : 1; }
};

// stash_type is a float type. What it asks for is a least precision: everything is computed in float or
// double whatever it says.
inline ElementType read_stash_type(AttrContext& c) {
  const int64_t type = c.integer("stash_type", 1);
  if (type < 0 || type > 31 || !kFloatTypes.contains(static_cast<ElementType>(type)))
    c.reject("attribute 'stash_type': expected a float type, found {}", type);
  return static_cast<ElementType>(type);
}

// Calls f(block of floats or doubles, position, size) over a run of any float type.
template <typename T, typename F>
void for_each_block(const T* x, int64_t count, F&& f) {
  constexpr int64_t kBlock = 1024;
  WideType<T> wide[kBlock];
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t size = std::min(kBlock, count - start);
    widen(x + start, wide, size);
    f(wide, start, size);
  }
}

struct RunMoments {
  double mean, variance;
};
template <typename T>
RunMoments moments_of(const T* x, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    const kernels::Moments m = kernels::moments_f32(x, count);
    return {m.mean, m.variance};
  } else if constexpr (std::is_same_v<T, double>) {
    const kernels::WideMoments m = kernels::moments_f64(x, count);
    return {m.mean, m.variance};
  } else {
    double sum = 0, squares = 0;
    float part;
    for_each_block(x, count, [&](const float* wide, int64_t, int64_t size) {
      kernels::reduce_rows_f32(kernels::ReduceKind::kSum, wide, 1, size, &part);
      sum += double{part};
    });
    const double mean = sum / static_cast<double>(count);
    for_each_block(x, count, [&](float* wide, int64_t, int64_t size) {
      kernels::affine_f32(wide, wide, size, 1, static_cast<float>(-mean));
      kernels::reduce_rows_f32(kernels::ReduceKind::kSumSquare, wide, 1, size, &part);
      squares += double{part};
    });
    return {mean, squares / static_cast<double>(count)};
  }
}

// y = (x - mean) * factor + bias; y may be x.
template <typename T>
void affine_run(const T* x, T* y, int64_t count, double mean, double factor, double bias) {
  const double shift = mean == 0 ? bias : bias - mean * factor;
  if constexpr (std::is_same_v<T, float>) {
    kernels::affine_f32(x, y, count, static_cast<float>(factor), static_cast<float>(shift));
  } else if constexpr (std::is_same_v<T, double>) {
    kernels::affine_f64(x, y, count, factor, shift);
  } else {
    for_each_block(x, count, [&](float* wide, int64_t start, int64_t size) {
      kernels::affine_f32(wide, wide, size, static_cast<float>(factor), static_cast<float>(shift));
      kernels::narrow(wide, y + start, size);
    });
  }
}

template <typename T>
double parameter(const TensorView& view, int64_t i) {
  double value;
  widen(view.as<T>() + i, &value, 1);
  return value;
}

}  // namespace plimsoll
