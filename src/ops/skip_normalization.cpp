#include "ops/skip_normalization.h"

#include "ops/elementwise.h"
#include "ops/microsoft_decomposed.h"

namespace plimsoll {

const void* skip_attrs(AttrContext& c) {
  auto* a = c.make<SkipAttrs>();
  a->epsilon = c.real("epsilon", 1e-12f);
  return a;
}

void infer_skip(InferContext& c, const SkipInputs& at) {
  infer_like_first(c, kFloatTypes, {1, 2, at.beta, at.bias});
  c.expect_rank(0, 2, 3);
  for (size_t i : {size_t{2}, at.beta, at.bias}) expect_last_dimension(c, i);
  set_output_like(c, 3, c.type(0), 0);
  if (!c.ranked(0)) {
    c.set_unranked_output(1, ElementType::kFloat);
    c.set_unranked_output(2, ElementType::kFloat);
    return;
  }
  std::vector<Dim> moments(c.dims(0).begin(), c.dims(0).end());
  moments.back() = 1;
  c.set_output(1, ElementType::kFloat, moments);
  c.set_output(2, ElementType::kFloat, moments);
  if (!c.ranked(1)) return;
  // Skip is repeated over the batch where it has none.
  const auto x = c.dims(0), skip = c.dims(1);
  bool fits = skip.size() <= x.size();
  for (size_t i = 0; fits && i < skip.size(); ++i) {
    const Dim own = skip[skip.size() - 1 - i], wanted = x[x.size() - 1 - i];
    fits = !own.is_constant() || !wanted.is_constant() || own == wanted || (i == 2 && own == Dim(1));
  }
  if (!fits) c.reject("skip of shape {} does not fit input of shape {}", to_string(skip), to_string(x));
}

Edge* write_skip_sum(DecomposeContext& c, const SkipInputs& at) {
  Edge* bias = c.in(at.bias);
  if (bias == nullptr) return c.op_into(3, "Add", {c.in(0), c.in(1)});
  // The bias meets the product that makes the input, as long as it is the first to come.
  return c.op_into(3, "Add", {c.op("Add", {c.in(0), bias}), c.in(1)});
}

void write_rms(DecomposeContext& c, Edge* x, Edge* scale, int64_t axis, float epsilon, size_t inverse,
               size_t rank) {
  c.op_into(0, "RMSNormalization", {x, scale}, c.attributes().set("axis", axis).set("epsilon", epsilon));
  if (c.out(inverse) == nullptr) return;
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis : axis - static_cast<int64_t>(rank); i < 0; ++i) axes.push_back(i);
  Edge* wide = c.op("Cast", {x}, c.attributes().set("to", int64_t{1}));
  Edge* mean = c.op("ReduceMean", {c.op("Mul", {wide, wide}), c.build.integers(axes)});
  Edge* root = c.op("Sqrt", {c.op("Add", {mean, c.build.scalar(epsilon)})});
  c.op_into(inverse, "Reciprocal", {root});
}

}  // namespace plimsoll
