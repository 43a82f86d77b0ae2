#include <cmath>

#include "kernels/normalize.h"
#include "ops/elementwise.h"
#include "ops/normalization.h"

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

template <typename T>
void normalize(const T* x, T* y, int64_t count, double epsilon, double scale, double bias) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(load_element(x[i]));
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double distance = static_cast<double>(load_element(x[i])) - mean;
    squares += distance * distance;
  }
  const double factor = scale / std::sqrt(squares / static_cast<double>(count) + epsilon);
  for (int64_t i = 0; i < count; ++i) {
    const double value = (static_cast<double>(load_element(x[i])) - mean) * factor + bias;
    y[i] = T(static_cast<ComputeType<T>>(value));
  }
}

void normalize(const float* x, float* y, int64_t count, double epsilon, double scale, double bias) {
  const kernels::Moments m = kernels::moments_f32(x, count);
  const double factor = scale / std::sqrt(double{m.variance} + epsilon);
  kernels::affine_f32(x, y, count, static_cast<float>(factor), static_cast<float>(bias - m.mean * factor));
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
      const double scale = static_cast<double>(load_element(c.inputs[1].as<T>()[i % dims[1]]));
      const double bias = static_cast<double>(load_element(c.inputs[2].as<T>()[i % dims[1]]));
      normalize(c.inputs[0].as<T>() + i * count, c.outputs[0].as<T>() + i * count, count, epsilon, scale,
                bias);
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
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
};

}  // namespace plimsoll
