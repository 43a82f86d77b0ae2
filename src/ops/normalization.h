// What normalization operators share.
#pragma once

#include <algorithm>

#include "graph/op_def.h"
#include "kernels/normalize.h"
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

// stash_type is a float type. What it asks for is a least precision: everything is computed in float or
// double whatever it says.
inline void read_stash_type(AttrContext& c) {
  const int64_t type = c.integer("stash_type", 1);
  if (type < 0 || type > 31 || !kFloatTypes.contains(static_cast<ElementType>(type)))
    c.reject("attribute 'stash_type': expected a float type, found {}", type);
}

// Calls f(block of doubles, position, size) over a run of any float type.
template <typename T, typename F>
void for_each_block(const T* x, int64_t count, F&& f) {
  constexpr int64_t kBlock = 256;
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
  }
  double sum = 0, squares = 0;
  for_each_block(x, count, [&](const auto* wide, int64_t, int64_t size) {
    for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(wide[i]);
  });
  const double mean = sum / static_cast<double>(count);
  for_each_block(x, count, [&](const auto* wide, int64_t, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
      const double distance = static_cast<double>(wide[i]) - mean;
      squares += distance * distance;
    }
  });
  return {mean, squares / static_cast<double>(count)};
}

// y = (x - mean) * factor + bias; y may be x.
template <typename T>
void affine_run(const T* x, T* y, int64_t count, double mean, double factor, double bias) {
  if constexpr (std::is_same_v<T, float>)
    return kernels::affine_f32(x, y, count, static_cast<float>(factor),
                               static_cast<float>(bias - mean * factor));
  using W = WideType<T>;
  const W m = static_cast<W>(mean), a = static_cast<W>(factor), b = static_cast<W>(bias);
  for_each_block(x, count, [&](W* wide, int64_t start, int64_t size) {
    for (int64_t i = 0; i < size; ++i) wide[i] = (wide[i] - m) * a + b;
    narrow(wide, y + start, size);
  });
}

template <typename T>
double parameter(const TensorView& view, int64_t i) {
  double value;
  widen(view.as<T>() + i, &value, 1);
  return value;
}

}  // namespace plimsoll
