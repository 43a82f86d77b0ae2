// What conv_<type>.cpp gives to conv.cpp: the functions of one element type, for the instruction set at hand;
// and how weights are read while they are packed.
#pragma once

#include <cstring>

#include "kernels/conv.h"

namespace plimsoll::kernels {

template <class T>
struct ConvFunctions {
  size_t (*packed_bytes)(const ConvShape& shape);
  void (*pack)(const ConvShape& shape, const ConvWeights<T>& weights, T* packed, int threads);
  ConvScratch (*scratch_need)(const ConvShape& shape, int64_t pad_bottom, int64_t pad_right);
  void (*run)(const ConvShape& shape, const T* x, const void* packed, T* y, const ConvEpilogue<T>& epilogue,
              const ConvScratch& need, int64_t scratch_per_thread, std::byte* scratch, int threads);
};

template <class T>
const ConvFunctions<T>& conv_functions();
template <>
const ConvFunctions<float>& conv_functions();
template <>
const ConvFunctions<double>& conv_functions();
template <>
const ConvFunctions<Float16>& conv_functions();
template <>
const ConvFunctions<BFloat16>& conv_functions();

// A weight times its channel's factor, in the type that is computed in.
template <class T>
LaneOf<T> scaled_weight(const ConvWeights<T>& w, int64_t out, int64_t in, int64_t row, int64_t column) {
  // Most weights are one block: no division.
  const int64_t begin =
      out < w.block ? out * w.out_stride : out / w.block * w.block_stride + out % w.block * w.out_stride;
  const int64_t at = begin + in * w.in_stride + row * w.row_stride + column * w.column_stride;
  T value;
  std::memcpy(&value, static_cast<const char*>(w.data) + at * static_cast<int64_t>(sizeof(T)), sizeof value);
  const auto wide = static_cast<LaneOf<T>>(value);
  return w.scale == nullptr ? wide : wide * static_cast<LaneOf<T>>(w.scale[out]);
}

}  // namespace plimsoll::kernels
