// Opset 18 has a scale and a bias per group, opset 21 per channel.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/normalization.h"
#include "ops/row_norm_gradient.h"

namespace plimsoll {
namespace {

struct GroupNormAttrs {
  float epsilon = 1e-5f;
  int64_t groups = 1;
  bool per_group = false;  // the parameters
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<GroupNormAttrs>();
  a->epsilon = c.real("epsilon", 1e-5f);
  a->groups = c.integer("num_groups");
  if (a->groups < 1) c.reject("attribute 'num_groups': expected at least 1, found {}", a->groups);
  a->per_group = c.opset() < 21;
  if (!a->per_group) read_stash_type(c);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<GroupNormAttrs>();
  infer_float_unary(c);
  c.expect_rank(0, 2, InferContext::kMaxRank);
  for (size_t i = 1; i < 3; ++i) {
    c.expect_same_type(0, i);
    if (c.ranked(0)) expect_channels(c, i, a.per_group ? Dim(a.groups) : c.dims(0)[1]);
  }
  if (!c.ranked(0)) return;
  const Dim channels = c.dims(0)[1];
  if (channels.is_constant() && channels.value() % a.groups != 0)
    c.reject("{} channels cannot be divided into {} groups", channels.value(), a.groups);
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

template <typename T>
void normalize_group(const RunContext& c, int64_t image, int64_t group, int64_t channels, int64_t plane) {
  const auto& a = c.attrs<GroupNormAttrs>();
  const int64_t start = (image * a.groups + group) * channels * plane;
  const T* x = c.inputs[0].as<T>() + start;
  T* y = c.outputs[0].as<T>() + start;
  const RunMoments m = moments_of(x, channels * plane);
  const double inverse = 1 / std::sqrt(m.variance + double{a.epsilon});
  for (int64_t k = 0; k < channels; ++k) {
    const int64_t at = a.per_group ? group : group * channels + k;
    affine_run(x + k * plane, y + k * plane, plane, m.mean, parameter<T>(c.inputs[1], at) * inverse,
               parameter<T>(c.inputs[2], at));
  }
}

void run(const RunContext& c) {
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const int64_t groups = c.attrs<GroupNormAttrs>().groups, channels = dims[1] / groups;
  if (c.outputs[0].elements() == 0) return;
  const int64_t plane = c.outputs[0].elements() / (dims[0] * dims[1]);
  visit_float(c.inputs[0].type, [&](auto tag) {
    kernels::parallel_for(c.threads, dims[0] * groups, [&](int64_t i) {
      normalize_group<typename decltype(tag)::type>(c, i / groups, i % groups, channels, plane);
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

void gradient(GradientContext& c) {
  const auto& a = c.attrs<GroupNormAttrs>();
  gradient_grouped_norm(c, a.groups, a.per_group ? a.groups : 0, a.epsilon);
}

}  // namespace

extern const OpDef op_group_normalization = {
    .name = "GroupNormalization",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
