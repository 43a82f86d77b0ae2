// Runs of any float type, widened and narrowed in blocks: a loop over float or double serves all types.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/storage.h"
#include "tensor/tensor.h"

namespace plimsoll {

// What a float type computes in.
template <typename T>
using WideType = kernels::LaneOf<T>;

template <typename T, typename W>
void widen(const T* from, W* to, int64_t count) {
  if constexpr (kernels::kIsHalf<T> && std::is_same_v<W, float>) {
    kernels::widen(from, to, count);
  } else if constexpr (kernels::kIsHalf<T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<W>(static_cast<float>(from[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<W>(from[i]);
  }
}

template <typename W, typename T>
void narrow(const W* from, T* to, int64_t count) {
  if constexpr (kernels::kIsHalf<T> && std::is_same_v<W, float>) {
    kernels::narrow(from, to, count);
  } else if constexpr (kernels::kIsHalf<T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = T(static_cast<float>(from[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  }
}

// One element of a float type; `value` is float or double.
template <typename T, typename W>
T narrowed(W value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

// The sum of products, in several lanes that the compiler keeps in vectors.
template <typename W>
W dot(const W* a, const W* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  W lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  W sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (W lane : lanes) sum += lane;
  return sum;
}

// Elements [start, start + count) of a float tensor of any type.
template <typename W>
void read_floats(const TensorView& view, int64_t start, int64_t count, W* to) {
  visit_float(view.type,
              [&](auto tag) { widen(view.as<typename decltype(tag)::type>() + start, to, count); });
}
template <typename W>
void write_floats(const TensorView& view, int64_t start, int64_t count, const W* from) {
  visit_float(view.type,
              [&](auto tag) { narrow(from, view.as<typename decltype(tag)::type>() + start, count); });
}

}  // namespace plimsoll
