#include "ops/feature_rows.h"

#include "kernels/parallel.h"

namespace plimsoll {

void expect_feature_rows(const InferContext& c, int64_t expected) {
  c.expect_type(0, kFeatureTypes);
  c.expect_rank(0, 1, 2);
  if (!c.ranked(0) || expected < 0) return;
  const Dim features = c.dims(0).back();
  if (features.is_constant() && features.value() != expected)
    c.reject("input 0: expected {} features, found shape {}", expected, to_string(c.dims(0)));
}

Dim row_count(const NodeContext& c) {
  return c.rank(0) == 2 ? c.dims(0)[0] : Dim(1);
}

FeatureRows feature_rows(const TensorView& x) {
  return {x.rank() == 2 ? x.dims[0] : 1, x.dims.back()};
}

int64_t float_features_scratch(SelectContext& c) {
  if (c.type(0) == ElementType::kFloat || !c.ranked(0)) return 0;
  return c.scratch(product(c.dims(0)) * Dim(4));
}

const float* float_features(const RunContext& c, int64_t scratch_offset) {
  const TensorView& x = c.inputs[0];
  if (x.type == ElementType::kFloat) return x.as<float>();
  auto* y = c.scratch_as<float>(scratch_offset);
  const int64_t count = x.elements();
  const auto convert = [&](const auto* from) {
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(from[i]);
  };
  if (x.type == ElementType::kDouble) convert(x.as<double>());
  if (x.type == ElementType::kInt64) convert(x.as<int64_t>());
  if (x.type == ElementType::kInt32) convert(x.as<int32_t>());
  return y;
}

}  // namespace plimsoll
