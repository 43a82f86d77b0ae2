#include "ops/elementwise.h"
#include "ops/feature_rows.h"

namespace plimsoll {
namespace {

struct ScalerAttrs {
  std::span<const float> scale, offset;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ScalerAttrs>();
  a->scale = c.reals("scale");
  a->offset = c.reals("offset");
  if (a->scale.empty() || a->scale.size() != a->offset.size())
    c.reject("attributes 'scale' and 'offset': expected as many of both and at least one, found {} and {}",
             a->scale.size(), a->offset.size());
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ScalerAttrs>();
  expect_feature_rows(c, a.scale.size() == 1 ? -1 : static_cast<int64_t>(a.scale.size()));
  set_output_like(c, 0, ElementType::kFloat, 0);
}

template <typename T>
void scale_rows(const RunContext& c) {
  const auto& a = c.attrs<ScalerAttrs>();
  const auto [rows, features] = feature_rows(c.inputs[0]);
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const size_t step = a.scale.size() == 1 ? 0 : 1;
  kernels::parallel_for(rows * features > 65536 ? c.threads : 1, rows, [&, features = features](int64_t row) {
    const T* x = c.inputs[0].as<T>() + row * features;
    float* y = c.outputs[0].as<float>() + row * features;
    for (int64_t i = 0; i < features; ++i) {
      const size_t at = static_cast<size_t>(i) * step;
      y[i] = static_cast<float>((static_cast<Wide>(x[i]) - a.offset[at]) * a.scale[at]);
    }
  });
}

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) scale_rows<T>(c);
  });
}

}  // namespace

extern const OpDef op_scaler = {
    .domain = kMlDomain,
    .name = "Scaler",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost_elementwise,
};

}  // namespace plimsoll
