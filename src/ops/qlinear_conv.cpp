#include "ops/integer_conv.h"
#include "ops/integer_product.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

constexpr size_t kXScale = 1, kWScale = 4, kYScale = 6, kYZero = 7, kBias = 8;
constexpr IntegerConvInputs kInputs = {.x = 0, .w = 3, .x_zero = 2, .w_zero = 5};

struct QLinearConvChoice {
  IntegerConv conv;
  int64_t scales_at = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  return a;
}

// One value, or one per output channel where that is allowed.
void expect_values(const InferContext& c, size_t input, bool per_channel) {
  if (!c.has_input(input) || !c.ranked(input) || !c.ranked(kInputs.w)) return;
  const Dim found = product(c.dims(input)), channels = c.dims(kInputs.w)[0];
  if (!found.is_constant() || found.value() == 1 || !channels.is_constant()) return;
  if (!per_channel || !(found == channels))
    c.reject("input {}: expected one value{}, found shape {}", input,
             per_channel ? " or one per output channel" : "", to_string(c.dims(input)));
}

void infer(InferContext& c) {
  for (size_t i : {kXScale, kWScale, kYScale}) c.expect_type(i, types(ElementType::kFloat));
  c.expect_type(kYZero, kByteTypes);
  infer_integer_conv(c, kInputs, c.type(kYZero));
  for (size_t i : {kXScale, kYScale, kYZero}) expect_values(c, i, false);
  expect_values(c, kWScale, true);
  if (!c.has_input(kBias)) return;
  c.expect_type(kBias, types(ElementType::kInt32));
  if (!c.ranked(kBias) || !c.ranked(kInputs.w)) return;
  c.expect_rank(kBias, 1, 1);
  const Dim found = c.dims(kBias)[0], channels = c.dims(kInputs.w)[0];
  if (found.is_constant() && channels.is_constant() && !(found == channels))
    c.reject("input {}: expected {} values, found {}", kBias, channels.value(), found.value());
}

const void* select(SelectContext& c) {
  auto* choice = c.make<QLinearConvChoice>();
  choice->conv = select_integer_conv(c, kInputs);
  if (c.ranked(kInputs.w)) choice->scales_at = c.scratch(c.dims(kInputs.w)[0] * Dim(4));
  return choice;
}

void pack(const PackContext& c) {
  pack_integer_conv(c, c.choice<QLinearConvChoice>().conv);
}

void run(const RunContext& c) {
  const auto& choice = c.choice<QLinearConvChoice>();
  const TensorView& w_scale = c.inputs[kWScale];
  const float x_scale = *c.inputs[kXScale].as<float>(), y_scale = *c.inputs[kYScale].as<float>();
  float* scales = c.scratch_as<float>(choice.scales_at);
  for (int64_t i = 0; i < c.inputs[kInputs.w].dims[0]; ++i)
    scales[i] = x_scale * w_scale.as<float>()[w_scale.elements() == 1 ? 0 : i] / y_scale;
  kernels::IntGemmFinish finish;
  finish.scales = scales;
  finish.zero_point = integer_at(c.inputs[kYZero].type, c.inputs[kYZero].data, 0);
  if (c.has_input(kBias)) finish.bias = c.inputs[kBias].as<int32_t>();
  run_integer_conv(c, kInputs, choice.conv, finish);
}

Cost cost(const NodeContext& c) {
  return cost_integer_conv(c, kInputs);
}

}  // namespace

extern const OpDef op_qlinear_conv = {
    .name = "QLinearConv",
    .inputs = {8, 9},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
