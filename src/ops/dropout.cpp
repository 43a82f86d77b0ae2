#include <cstring>

#include "ops/elementwise.h"

namespace plimsoll {
namespace {

// Inference only: what goes in comes out.
const void* attrs(AttrContext& c) {
  if (c.opset() < 7) {
    unary_attrs(c);
    if (c.integer("is_test", 0) == 0)
      fail(ErrorCode::kNotImplemented, "{}: training (is_test = 0) is not implemented", c.node().label());
  }
  if (c.opset() < 12) c.ignore("ratio");
  if (c.opset() >= 12) c.ignore("seed");
  return nullptr;
}

[[noreturn]] void reject_training(const Node& node) {
  fail(ErrorCode::kNotImplemented, "{}: training_mode = true is not implemented", node.label());
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  if (const TensorView* training = c.constant(2)) {
    if (training->type == ElementType::kBool && training->elements() == 1 &&
        training->data[0] != std::byte{0})
      reject_training(c.node());
  }
  set_output_like(c, 0, c.type(0), 0);
  set_output_like(c, 1, c.opset() < 10 ? c.type(0) : ElementType::kBool, 0);
}

void alias(AliasContext& c) {
  if (!c.has_input(2) || c.constant(2) != nullptr) c.view(0);
}

void run(const RunContext& c) {
  const TensorView& x = c.inputs[0];
  if (c.has_input(2) && c.inputs[2].elements() == 1 && c.inputs[2].data[0] != std::byte{0})
    reject_training(*c.node);
  if (c.has_output(0) && c.outputs[0].data != x.data)
    std::memcpy(c.outputs[0].data, x.data, static_cast<size_t>(x.bytes()));
  if (!c.has_output(1)) return;
  const TensorView& mask = c.outputs[1];
  if (mask.type == ElementType::kBool) {
    std::memset(mask.data, 1, static_cast<size_t>(mask.bytes()));
    return;
  }
  visit_float(mask.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(mask.as<T>(), mask.elements(), T(1.0f));
  });
}

}  // namespace

extern const OpDef op_dropout = {
    .name = "Dropout",
    .inputs = {1, 3},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
