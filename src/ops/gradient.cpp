// ai.onnx.preview.training.Gradient: dY/dX of tensors that its attributes name. It is no operator that runs:
// train/lower_gradient.h puts the nodes of the derivative in its place.
#include "ops/gradient.h"

#include "ops/elementwise.h"
#include "ops/training_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<GradientAttrs>();
  a->xs = c.texts("xs");
  a->zs = c.texts("zs");
  a->y = c.text("y");
  const Node& node = c.node();
  if (node.inputs.size() != a->xs.size() + a->zs.size())
    c.reject("expected {} inputs, one for each of 'xs' and 'zs', found {}", a->xs.size() + a->zs.size(),
             node.inputs.size());
  if (node.outputs.size() != a->xs.size())
    c.reject("expected {} outputs, one for each of 'xs', found {}", a->xs.size(), node.outputs.size());
  return a;
}

void infer(InferContext& c) {
  for (size_t i = 0; i < c.output_count(); ++i) {
    c.expect_type(i, kFloatTypes);
    set_output_like(c, i, c.type(i), i);
  }
}

}  // namespace

extern const OpDef op_gradient = {
    .domain = kTrainingDomain,
    .name = "Gradient",
    .inputs = {1, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
};

}  // namespace plimsoll
