// What one instruction set gives to winograd.cpp.
#pragma once

#include "kernels/winograd_plan.h"

namespace plimsoll::kernels {

template <class T>
struct WinogradJob {
  const ConvShape& shape;  // with strides of the output
  const WinogradPlan& plan;
  const T* x;
  const float* packed;
  T* y;
  const ConvEpilogue<T>& epilogue;
  int threads;
};

template <class T>
struct WinogradFunctions {
  using Pack = void (*)(const ConvShape& shape, const ConvWeights<T>& weights, float* packed, int threads);
  using Run = void (*)(const WinogradJob<T>& job, float* scratch);
  Pack pack_two, pack_four;
  Run run_two, run_four;
};

struct WinogradTable {
  WinogradVectors vectors;
  WinogradFunctions<float> floats;
  WinogradFunctions<Float16> halves;
  WinogradFunctions<BFloat16> brains;
};

}  // namespace plimsoll::kernels
