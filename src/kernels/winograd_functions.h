// What one instruction set gives to winograd.cpp.
#pragma once

#include "kernels/winograd_plan.h"

namespace plimsoll::kernels {

struct WinogradJob {
  const ConvShape& shape;  // with strides of the output
  const WinogradPlan& plan;
  const float* x;
  const float* packed;
  float* y;
  const ConvEpilogue<>& epilogue;
  int threads;
};

struct WinogradFunctions {
  using Pack = void (*)(const ConvShape& shape, const ConvWeights<>& weights, float* packed);
  using Run = void (*)(const WinogradJob& job, float* scratch);
  WinogradVectors vectors;
  Pack pack_two, pack_four;
  Run run_two, run_four;
};

}  // namespace plimsoll::kernels
