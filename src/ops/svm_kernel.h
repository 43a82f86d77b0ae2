// What both support vector machines share: kernel functions between rows and support vectors.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

enum class SvmKernelKind : uint8_t { kLinear, kPoly, kRbf, kSigmoid };

struct SvmKernel {
  SvmKernelKind kind = SvmKernelKind::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;
};
SvmKernel read_svm_kernel(AttrContext& c);  // attributes 'kernel_type' and 'kernel_params'

// values[j] = kernel(x, vectors[j, :]) of one row.
void svm_kernel_values(const SvmKernel& kernel, const float* x, const float* vectors, int64_t count,
                       int64_t features, float* values);

}  // namespace plimsoll
