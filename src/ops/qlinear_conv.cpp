#include "ops/qlinear_conv.h"

#include <algorithm>

#include "ops/layout.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

struct QLinearConvChoice {
  IntegerConv conv;
  int64_t scales_at = 0;
};

// One value, or one per output channel where that is allowed.
void expect_values(const InferContext& c, size_t input, bool per_channel) {
  if (!c.has_input(input) || !c.ranked(input) || !c.ranked(kQConv.w)) return;
  const Dim found = product(c.dims(input)), channels = c.dims(kQConv.w)[0];
  if (!found.is_constant() || found.value() == 1 || !channels.is_constant()) return;
  if (!per_channel || !(found == channels))
    c.reject("input {}: expected one value{}, found shape {}", input,
             per_channel ? " or one per output channel" : "", to_string(c.dims(input)));
}

void infer_addend(const InferContext& c) {
  c.expect_type(kQConvZ, kByteTypes);
  c.expect_type(kQConvSumZero, kByteTypes);
  for (size_t i : {kQConvZScale, kQConvSumScale}) c.expect_type(i, types(ElementType::kFloat));
  for (size_t i : {kQConvZScale, kQConvZZero, kQConvSumScale, kQConvSumZero}) expect_values(c, i, false);
  c.expect_same_type(kQConvSumZero, kQConvYZero);
  if (!c.ranked(kQConvZ) || !c.output(0).type.ranked) return;
  const std::span<const Dim> y = c.output(0).type.dims;
  c.expect_rank(kQConvZ, y.size(), y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const Dim z = c.dims(kQConvZ)[i];
    if (z.is_constant() && y[i].is_constant() && !(z == y[i]))
      c.reject("input {}: expected shape {}, found {}", kQConvZ, to_string(y), to_string(c.dims(kQConvZ)));
  }
}

}  // namespace

const void* read_qlinear_conv(AttrContext& c) {
  auto* a = c.make<QLinearConvAttrs>();
  read_conv(c, *a);
  if (c.node().domain != kPlimsollDomain) return a;
  a->least = static_cast<int32_t>(c.integer("least", INT32_MIN));
  a->most = static_cast<int32_t>(c.integer("most", INT32_MAX));
  return a;
}

void infer_qlinear_conv(InferContext& c) {
  for (size_t i : {kQConvXScale, kQConvWScale}) c.expect_type(i, types(ElementType::kFloat));
  ElementType type = ElementType::kFloat;
  if (c.has_input(kQConvYScale)) {
    c.expect_type(kQConvYScale, types(ElementType::kFloat));
    c.expect_type(kQConvYZero, kByteTypes);
    type = c.type(kQConvYZero);
  }
  infer_integer_conv(c, kQConv, type);
  for (size_t i : {kQConvXScale, kQConvYScale, kQConvYZero}) expect_values(c, i, false);
  expect_values(c, kQConvWScale, true);
  if (c.has_input(kQConvZ)) infer_addend(c);
  if (!c.has_input(kQConvBias)) return;
  c.expect_type(kQConvBias, types(ElementType::kInt32));
  if (!c.ranked(kQConvBias) || !c.ranked(kQConv.w)) return;
  c.expect_rank(kQConvBias, 1, 1);
  const Dim found = c.dims(kQConvBias)[0], channels = c.dims(kQConv.w)[0];
  if (found.is_constant() && channels.is_constant() && !(found == channels))
    c.reject("input {}: expected {} values, found {}", kQConvBias, channels.value(), found.value());
}

const void* select_qlinear_conv(SelectContext& c) {
  auto* choice = c.make<QLinearConvChoice>();
  choice->conv = select_integer_conv(c, kQConv);
  if (c.ranked(kQConv.w)) choice->scales_at = c.scratch(c.dims(kQConv.w)[0] * Dim(4));
  return choice;
}

void pack_qlinear_conv(const PackContext& c) {
  pack_integer_conv(c, c.choice<QLinearConvChoice>().conv);
}

namespace {

kernels::IntGemmAddend addend_of(const RunContext& c, float y_scale) {
  const TensorView& z = c.inputs[kQConvZ];
  const Quantization from = read_quantization(c, kQConvZScale, kQConvZZero);
  const Quantization to = read_quantization(c, kQConvSumScale, kQConvSumZero);
  kernels::IntGemmAddend addend;
  addend.data = z.data;
  addend.row_stride = c.outputs[0].dims.back();
  addend.is_signed = z.type == ElementType::kInt8;
  addend.zero_point = from.zero, addend.scale = from.scale / to.scale;
  addend.own_scale = y_scale / to.scale, addend.sum_zero_point = to.zero;
  return addend;
}

}  // namespace

void run_qlinear_conv(const RunContext& c) {
  const auto& choice = c.choice<QLinearConvChoice>();
  const auto& a = c.attrs<QLinearConvAttrs>();
  const TensorView& w_scale = c.inputs[kQConvWScale];
  const float x_scale = *c.inputs[kQConvXScale].as<float>();
  const float y_scale = c.has_input(kQConvYScale) ? *c.inputs[kQConvYScale].as<float>() : 1.0f;
  float* scales = c.scratch_as<float>(choice.scales_at);
  const float* from = w_scale.as<float>();
  const int64_t channels = c.inputs[kQConv.w].dims[0];
  if (w_scale.elements() == 1) {
    std::fill_n(scales, channels, x_scale * *from / y_scale);
  } else {
    for (int64_t i = 0; i < channels; ++i) scales[i] = x_scale * from[i] / y_scale;
  }
  kernels::IntGemmFinish finish;
  finish.scales = scales;
  finish.least = a.least, finish.most = a.most;
  if (c.has_input(kQConvYZero))
    finish.zero_point = integer_at(c.inputs[kQConvYZero].type, c.inputs[kQConvYZero].data, 0);
  if (c.has_input(kQConvBias)) finish.bias = c.inputs[kQConvBias].as<int32_t>();
  if (c.has_input(kQConvZ)) finish.addend = addend_of(c, y_scale);
  run_integer_conv(c, kQConv, choice.conv, finish);
}

Cost cost_qlinear_conv(const NodeContext& c) {
  return cost_integer_conv(c, kQConv);
}

namespace {

void layout(LayoutContext& c) {
  layout_fused(c, LayoutChoice::kMoved, kQConvZ);
}

}  // namespace

extern const OpDef op_qlinear_conv = {
    .name = "QLinearConv",
    .inputs = {8, 9},
    .attrs = read_qlinear_conv,
    .infer = infer_qlinear_conv,
    .select = select_qlinear_conv,
    .pack = pack_qlinear_conv,
    .run = run_qlinear_conv,
    .cost = cost_qlinear_conv,
    .layout = layout,
    .channels_last = true,
};

}  // namespace plimsoll
