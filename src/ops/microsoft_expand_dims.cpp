// Unsqueeze along one axis, an int32.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  c.expect_type(1, types(ElementType::kInt32));
  if (c.ranked(1)) {
    const Dim count = product(c.dims(1));
    if (count.is_constant() && count.value() != 1) c.reject("axis: expected one number");
  }
  const auto axis = c.integers(1);
  if (!c.ranked(0) || !axis) return c.set_unranked_output(0, c.type(0));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  dims.insert(dims.begin() + c.axis((*axis)[0], dims.size() + 1), Dim(1));
  c.set_output(0, c.type(0), dims);
}

void decompose(DecomposeContext& c) {
  Edge* axis = c.op("Cast", {c.in(1)}, c.attributes().set("to", int64_t{7}));
  c.op_into(0, "Unsqueeze", {c.in(0), c.op("Reshape", {axis, c.build.integers({1})})});
}

}  // namespace

extern const OpDef op_microsoft_expand_dims = {.domain = kMicrosoftDomain,
                                               .name = "ExpandDims",
                                               .inputs = {2, 2},
                                               .infer = infer,
                                               .decompose = decompose};

}  // namespace plimsoll
