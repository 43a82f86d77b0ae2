// Windows along one dimension: they become a dimension, and what is in them another one behind all.
#include <numeric>

#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct UnfoldAttrs {
  int64_t axis = -1, size = 1, step = 1;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<UnfoldAttrs>();
  a->axis = c.integer("dim", -1);
  a->size = c.integer("size");
  a->step = c.integer("step", 1);
  constexpr int64_t kMost = 1 << 24;
  if (a->size < 1 || a->size > kMost)
    c.reject("attribute 'size': expected 1 to {}, found {}", kMost, a->size);
  if (a->step < 1 || a->step > INT32_MAX)
    c.reject("attribute 'step': expected at least 1, found {}", a->step);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<UnfoldAttrs>();
  c.expect_type(0, kAllTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  if (dims[axis].is_constant() && dims[axis].value() < a.size)
    c.reject("windows of {} in a dimension of {}", a.size, dims[axis].value());
  dims[axis] = floor_div(dims[axis] - Dim(a.size), Dim(a.step)) + Dim(1);
  dims.push_back(a.size);
  c.set_output(0, c.type(0), dims);
}

void decompose(DecomposeContext& c) {
  if (!c.ranked(0)) fail(ErrorCode::kNotImplemented, "{}: an input whose rank is unknown", c.node().label());
  const auto& a = c.attrs<UnfoldAttrs>();
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = a.axis < 0 ? a.axis + rank : a.axis;
  Edge* length = c.op("Shape", {c.in(0)}, c.attributes().set("start", axis).set("end", axis + 1));
  Edge* limit =
      c.op("Squeeze", {c.op("Sub", {length, c.build.integers({a.size - 1})}), c.build.integers({0})});
  Edge* starts = c.op("Range", {c.build.scalar(int64_t{0}), limit, c.build.scalar(a.step)});
  Edge* within =
      c.op("Range", {c.build.scalar(int64_t{0}), c.build.scalar(a.size), c.build.scalar(int64_t{1})});
  Edge* taken =
      c.op("Gather", {c.in(0), c.op("Add", {c.op("Unsqueeze", {starts, c.build.integers({1})}), within})},
           c.attributes().set("axis", axis));
  std::vector<int64_t> order(static_cast<size_t>(rank) + 1);
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  c.op_into(0, "Transpose", {taken}, c.attributes().set("perm", order));
}

}  // namespace

extern const OpDef op_microsoft_unfold_tensor = {.domain = kMicrosoftDomain,
                                                 .name = "UnfoldTensor",
                                                 .attrs = attrs,
                                                 .infer = infer,
                                                 .decompose = decompose};

}  // namespace plimsoll
