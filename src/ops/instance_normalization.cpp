#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/row_norm_gradient.h"

namespace plimsoll {
namespace {

struct InstanceNormAttrs {
  float epsilon = 1e-5f;
};

const void* attrs(AttrContext& c) {
  unary_attrs(c);
  InstanceNormAttrs* a = c.make<InstanceNormAttrs>();
  a->epsilon = c.real("epsilon", 1e-5f);
  return a;
}

void infer(InferContext& c) {
  infer_float_unary(c);
  c.expect_rank(0, 2, kAnyNumber);
  for (size_t i = 1; i < 3; ++i) {
    c.expect_same_type(0, i);
    c.expect_rank(i, 1, 1);
    if (c.ranked(0)) expect_channels(c, i, c.dims(0)[1]);
  }
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

void run(const RunContext& c) {
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const double epsilon = double{c.attrs<InstanceNormAttrs>().epsilon};
  int64_t count = 1;
  for (int64_t d : dims.subspan(2)) count *= d;
  if (count == 0) return;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(c.threads, dims[0] * dims[1], [&](int64_t i) {
      const T* x = c.inputs[0].as<T>() + i * count;
      const RunMoments m = moments_of(x, count);
      const double factor = parameter<T>(c.inputs[1], i % dims[1]) / std::sqrt(m.variance + epsilon);
      affine_run(x, c.outputs[0].as<T>() + i * count, count, m.mean, factor,
                 parameter<T>(c.inputs[2], i % dims[1]));
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void gradient(GradientContext& c) {
  gradient_grouped_norm(c, 0, 0, c.attrs<InstanceNormAttrs>().epsilon);
}

}  // namespace

extern const OpDef op_instance_normalization = {
    .name = "InstanceNormalization",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
