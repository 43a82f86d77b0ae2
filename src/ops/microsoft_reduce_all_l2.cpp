// The norm of all inputs together.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  for (size_t i = 0; i < c.input_count(); ++i) c.expect_type(i, kFloatTypes);
  const Dim one[] = {1};
  c.set_output(0, ElementType::kFloat, one);
}

void decompose(DecomposeContext& c) {
  Edge* sum = nullptr;
  AttributeList to_float = c.attributes();
  to_float.set("to", static_cast<int64_t>(ElementType::kFloat));
  AttributeList no_dimensions = c.attributes();
  no_dimensions.set("keepdims", int64_t{0});
  for (size_t i = 0; i < c.input_count(); ++i) {
    Edge* square = c.op("ReduceSumSquare", {c.op("Cast", {c.in(i)}, to_float)}, no_dimensions);
    sum = sum == nullptr ? square : c.op("Add", {sum, square});
  }
  c.op_into(0, "Reshape", {c.op("Sqrt", {sum}), c.build.integers({1})});
}

}  // namespace

extern const OpDef op_microsoft_reduce_all_l2 = {
    .domain = kMicrosoftDomain,
    .name = "ReduceAllL2",
    .inputs = {1, kAnyNumber},
    .infer = infer,
    .decompose = decompose,
};

}  // namespace plimsoll
