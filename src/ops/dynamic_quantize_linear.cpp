#include "ops/dynamic_quantization.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kFloat));
  set_output_like(c, 0, ElementType::kUint8, 0);
  c.set_output(1, ElementType::kFloat, std::span<const Dim>());
  c.set_output(2, ElementType::kUint8, std::span<const Dim>());
}

void run(const RunContext& c) {
  const float* x = c.inputs[0].as<float>();
  const int64_t count = c.inputs[0].elements();
  const DynamicScale found = dynamic_scale(x, count, c.threads);
  if (c.has_output(0))
    kernels::quantize_8(x, count, found.scale, found.zero_point, 0, c.outputs[0].as<uint8_t>(), c.threads);
  if (c.has_output(1)) *c.outputs[1].as<float>() = found.scale;
  if (c.has_output(2)) *c.outputs[2].as<uint8_t>() = static_cast<uint8_t>(found.zero_point);
}

}  // namespace

extern const OpDef op_dynamic_quantize_linear = {
    .name = "DynamicQuantizeLinear",
    .outputs = {3, 3},
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
