#include "kernels/parallel.h"
#include "kernels/quantize.h"
#include "ops/elementwise.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

struct SoftmaxAttrs {
  int64_t axis = -1;
  bool flattens = false;  // as Softmax before opset 13: over all dimensions from the axis on
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<SoftmaxAttrs>();
  a->flattens = c.integer("opset") < 13;
  a->axis = c.integer("axis", -1);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<SoftmaxAttrs>();
  expect_qlinear_unary(c);
  if (c.ranked(kUnaryX) && c.rank(kUnaryX) > 0 &&
      !(a.flattens && a.axis == static_cast<int64_t>(c.rank(kUnaryX))))
    c.axis(a.axis, c.rank(kUnaryX));
  set_output_like(c, 0, c.type(kUnaryX), kUnaryX);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<SoftmaxAttrs>();
  const TensorView& x = c.inputs[kUnaryX];
  const auto rank = static_cast<int64_t>(x.rank());
  const int64_t axis = a.axis < 0 ? a.axis + rank : a.axis;
  int64_t outer = 1, count = 1, inner = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t& part = i < axis ? outer : i == axis || a.flattens ? count : inner;
    part *= x.dims[static_cast<size_t>(i)];
  }
  const Quantization to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  const kernels::SoftmaxTable table(read_quantization(c, kUnaryXScale, kUnaryXZero).scale);
  kernels::parallel_for(x.elements() < 16384 ? 1 : c.threads, outer * inner, [&](int64_t line) {
    const int64_t start = line / inner * count * inner + line % inner;
    const uint8_t* from = x.as<uint8_t>() + start;
    uint8_t* y = c.outputs[0].as<uint8_t>() + start;
    if (inner == 1)
      return kernels::soften_8(table, x.type == ElementType::kInt8, from, count, to.scale, to.zero, y);
    int32_t largest = -128;
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, byte_value(x.type, from[i * inner]));
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += table.values[largest - byte_value(x.type, from[i * inner])];
    for (int64_t i = 0; i < count; ++i)
      y[i * inner] =
          quantize_byte(x.type, to, table.values[largest - byte_value(x.type, from[i * inner])] / sum);
  });
}

}  // namespace

extern const OpDef op_qlinear_softmax = {
    .domain = kMicrosoftDomain,
    .name = "QLinearSoftmax",
    .inputs = {5, 5},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
