// QLinearLayerNormalization(X, scale, zero point, gamma, beta, Y's scale, zero point): LayerNormalization
// over the last axis of an 8-bit tensor, in floats row by row. beta may be absent.
#include "kernels/normalize.h"
#include "kernels/parallel.h"
#include "kernels/quantize.h"
#include "ops/elementwise.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kXScale = 1, kXZero = 2, kGamma = 3, kBeta = 4, kYScale = 5, kYZero = 6;

struct NormAttrs {
  float epsilon = 1e-5f;
};

struct NormChoice {
  int64_t row_at = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<NormAttrs>();
  a->epsilon = c.real("epsilon", 1e-5f);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kX, kByteTypes);
  c.expect_type(kYZero, kByteTypes);
  expect_quantization(c, kX, kXScale, kXZero);
  expect_quantization(c, kYZero, kYScale, kYZero);
  if (c.ranked(kX)) c.expect_rank(kX, 1, InferContext::kMaxRank);
  for (size_t i : {kGamma, kBeta}) {
    if (!c.has_input(i)) continue;
    c.expect_type(i, types(ElementType::kFloat));
    if (!c.ranked(i) || !c.ranked(kX)) continue;
    const Dim found = product(c.dims(i)), cols = c.dims(kX).back();
    if (found.is_constant() && cols.is_constant() && !(found == cols))
      c.reject("input {}: expected {} elements, found shape {}", i, cols.value(), to_string(c.dims(i)));
  }
  set_output_like(c, 0, c.type(kYZero), kX);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<NormChoice>();
  if (c.ranked(kX)) choice->row_at = c.scratch(c.dims(kX).back() * Dim(int64_t{sizeof(float)} * c.threads));
  return choice;
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  const int64_t cols = x.dims.back(), rows = cols == 0 ? 0 : x.elements() / cols;
  const Quantization from = read_quantization(c, kXScale, kXZero), to = read_quantization(c, kYScale, kYZero);
  const float* beta = c.has_input(kBeta) ? c.inputs[kBeta].as<float>() : nullptr;
  const int64_t tasks = rows * cols < 16384 ? 1 : std::min<int64_t>(c.threads, rows);
  kernels::parallel_for(c.threads, tasks, [&](int64_t task) {
    float* row = c.scratch_as<float>(c.choice<NormChoice>().row_at) + task * cols;
    for (int64_t r = rows * task / tasks; r < rows * (task + 1) / tasks; ++r) {
      kernels::dequantize_8(x.as<uint8_t>() + r * cols, x.type == ElementType::kInt8, cols, from.scale,
                            from.zero, row, 1);
      kernels::layer_norm_f32(row, c.inputs[kGamma].as<float>(), beta, row, 1, cols,
                              c.attrs<NormAttrs>().epsilon, nullptr, nullptr);
      kernels::quantize_8(row, cols, to.scale, to.zero, y.type == ElementType::kInt8 ? -128 : 0,
                          y.as<uint8_t>() + r * cols, 1);
    }
  });
}

}  // namespace

extern const OpDef op_qlinear_layer_normalization = {
    .domain = kPlimsollDomain,
    .name = "QLinearLayerNormalization",
    .inputs = {7, 7},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .select = select,
    .run = run,
    .optional_inputs = (1u << kXZero) | (1u << kBeta),
};

}  // namespace plimsoll
