#include <limits>

#include "ops/elementwise.h"
#include "ops/feature_rows.h"

namespace plimsoll {
namespace {

enum class Norm : uint8_t { kMax, kL1, kL2 };
struct NormalizerAttrs {
  Norm norm = Norm::kMax;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<NormalizerAttrs>();
  const std::string_view name = c.text("norm", "MAX");
  if (name != "MAX" && name != "L1" && name != "L2")
    c.reject("attribute 'norm': expected MAX, L1 or L2, found '{}'", name);
  a->norm = name == "MAX" ? Norm::kMax : name == "L1" ? Norm::kL1 : Norm::kL2;
  return a;
}

void infer(InferContext& c) {
  expect_feature_rows(c, -1);
  set_output_like(c, 0, ElementType::kFloat, 0);
}

// MAX is of the values as they are, not of their magnitudes: so the specification's formula, and ONNX
// Runtime.
template <typename T>
double norm_of(Norm norm, const T* x, int64_t count) {
  double result = norm == Norm::kMax ? std::numeric_limits<double>::lowest() : 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(x[i]);
    if (norm == Norm::kMax)
      result = std::max(result, value);
    else
      result += norm == Norm::kL1 ? std::abs(value) : value * value;
  }
  return norm == Norm::kL2 ? std::sqrt(result) : result;
}

template <typename T>
void normalize_rows(const RunContext& c) {
  const auto [rows, features] = feature_rows(c.inputs[0]);
  const Norm norm = c.attrs<NormalizerAttrs>().norm;
  kernels::parallel_for(rows * features > 65536 ? c.threads : 1, rows, [&, features = features](int64_t row) {
    const T* x = c.inputs[0].as<T>() + row * features;
    float* y = c.outputs[0].as<float>() + row * features;
    const double divisor = norm_of(norm, x, features);
    for (int64_t i = 0; i < features; ++i)
      y[i] =
          static_cast<float>(divisor == 0 ? static_cast<double>(x[i]) : static_cast<double>(x[i]) / divisor);
  });
}

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) normalize_rows<T>(c);
  });
}

}  // namespace

extern const OpDef op_normalizer = {
    .domain = kMlDomain,
    .name = "Normalizer",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_elementwise,
};

}  // namespace plimsoll
