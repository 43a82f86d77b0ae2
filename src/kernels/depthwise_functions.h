// What depthwise_<type>.cpp gives to depthwise.cpp: the functions of one element type, for the instruction
// set at hand.
#pragma once

#include "kernels/depthwise.h"

namespace plimsoll::kernels {

template <class T>
struct DepthwiseFunctions {
  size_t (*packed_bytes)(const ConvShape& shape);
  void (*pack)(const ConvShape& shape, const ConvWeights<T>& weights, LaneOf<T>* packed);
  void (*run)(const ConvShape& shape, const T* x, const LaneOf<T>* packed, T* y,
              const ConvEpilogue<T>& epilogue, int threads);
};

template <class T>
const DepthwiseFunctions<T>& depthwise_functions();
template <>
const DepthwiseFunctions<float>& depthwise_functions();
template <>
const DepthwiseFunctions<double>& depthwise_functions();
template <>
const DepthwiseFunctions<Float16>& depthwise_functions();
template <>
const DepthwiseFunctions<BFloat16>& depthwise_functions();

}  // namespace plimsoll::kernels
