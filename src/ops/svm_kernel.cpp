#include "ops/svm_kernel.h"

#include <cmath>

#include "kernels/inner_products.h"

namespace plimsoll {

SvmKernel read_svm_kernel(AttrContext& c) {
  SvmKernel kernel;
  const std::string_view name = c.text("kernel_type", "LINEAR");
  constexpr std::pair<std::string_view, SvmKernelKind> kNames[] = {{"LINEAR", SvmKernelKind::kLinear},
                                                                   {"POLY", SvmKernelKind::kPoly},
                                                                   {"RBF", SvmKernelKind::kRbf},
                                                                   {"SIGMOID", SvmKernelKind::kSigmoid}};
  bool found = false;
  for (const auto& [known, kind] : kNames) {
    if (name != known) continue;
    kernel.kind = kind;
    found = true;
  }
  if (!found) c.reject("attribute 'kernel_type': expected LINEAR, POLY, RBF or SIGMOID, found '{}'", name);
  const auto parameters = c.reals("kernel_params");
  if (parameters.empty()) return kernel;
  if (parameters.size() != 3)
    c.reject("attribute 'kernel_params': expected gamma, coef0 and degree, found {} numbers",
             parameters.size());
  kernel.gamma = parameters[0], kernel.coef0 = parameters[1], kernel.degree = parameters[2];
  return kernel;
}

void svm_kernel_values(const SvmKernel& kernel, const float* x, const float* vectors, int64_t count,
                       int64_t features, float* values) {
  if (kernel.kind == SvmKernelKind::kRbf) {
    kernels::squared_distances_f32(x, 1, vectors, count, features, values);
    for (int64_t i = 0; i < count; ++i) values[i] = std::exp(-kernel.gamma * values[i]);
    return;
  }
  kernels::inner_products_f32(x, 1, vectors, count, features, nullptr, values);
  if (kernel.kind == SvmKernelKind::kPoly) {
    for (int64_t i = 0; i < count; ++i)
      values[i] = std::pow(kernel.gamma * values[i] + kernel.coef0, kernel.degree);
  } else if (kernel.kind == SvmKernelKind::kSigmoid) {
    for (int64_t i = 0; i < count; ++i) values[i] = std::tanh(kernel.gamma * values[i] + kernel.coef0);
  }
}

}  // namespace plimsoll
