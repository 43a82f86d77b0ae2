#include "kernels/convert.h"
#include "ops/integer_product.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr size_t kAScale = 2, kBScale = 3, kBias = 6;
constexpr ProductInputs kInputs = {.a = 0, .b = 1, .a_zero = 4, .b_zero = 5};

struct ToFloatChoice {
  IntegerProduct product;
  int64_t scales_at = 0, bias_at = 0, y_at = 0;
};

void infer(InferContext& c) {
  c.expect_type(kInputs.a, kByteTypes);
  c.expect_type(kInputs.b, kByteTypes);
  c.expect_type(kAScale, types(ElementType::kFloat, ElementType::kFloat16));
  c.expect_same_type(kAScale, kBScale);
  if (c.has_input(kBias)) c.expect_same_type(kAScale, kBias);
  const Dim count = c.ranked(kAScale) ? product(c.dims(kAScale)) : Dim(1);
  if (count.is_constant() && count.value() != 1)
    c.reject("input {}: expected one scale, found shape {}", kAScale, to_string(c.dims(kAScale)));
  const auto dims = infer_product(c, kInputs);
  if (!dims) return c.set_unranked_output(0, c.type(kAScale));
  expect_per_column(c, kBScale, kInputs);
  if (c.has_input(kBias) && c.ranked(kBias)) {
    const Dim columns = c.rank(kInputs.b) > 1 ? c.dims(kInputs.b).back() : Dim(1),
              found = product(c.dims(kBias));
    if (found.is_constant() && columns.is_constant() && !(found == columns))
      c.reject("input {}: expected {} values, found shape {}", kBias, columns.value(),
               to_string(c.dims(kBias)));
  }
  c.set_output(0, c.type(kAScale), *dims);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<ToFloatChoice>();
  choice->product = select_product(c, kInputs);
  if (!c.ranked(kInputs.b) || !c.output(0).type.ranked) return choice;
  const Dim columns = c.rank(kInputs.b) > 1 ? c.dims(kInputs.b).back() : Dim(1);
  choice->scales_at = c.scratch(columns * Dim(4));
  if (c.type(kAScale) == ElementType::kFloat) return choice;
  choice->bias_at = c.scratch(columns * Dim(4));
  choice->y_at = c.scratch(product(c.output(0).type.dims) * Dim(4));
  return choice;
}

void pack(const PackContext& c) {
  pack_product(c, kInputs);
}

const float* read_bias(const RunContext& c, const ToFloatChoice& choice) {
  if (!c.has_input(kBias)) return nullptr;
  const TensorView& bias = c.inputs[kBias];
  if (bias.type == ElementType::kFloat) return bias.as<float>();
  float* wide = c.scratch_as<float>(choice.bias_at);
  read_as_floats(bias, 0, bias.elements(), wide);
  return wide;
}

void run(const RunContext& c) {
  const auto& choice = c.choice<ToFloatChoice>();
  const IntegerProduct& p = choice.product;
  const TensorView &b_scale = c.inputs[kBScale], &y = c.outputs[0];
  const ProductRun product(c, kInputs, p);
  const bool is_float = y.type == ElementType::kFloat;
  float* to = is_float ? y.as<float>() : c.scratch_as<float>(choice.y_at);
  float* scales = c.scratch_as<float>(choice.scales_at);
  const float* bias = read_bias(c, choice);
  const float a_scale = read_as_float(c.inputs[kAScale], 0);
  for (int64_t batch = 0; batch < p.batches; ++batch) {
    ProductStep step = product.step(batch);
    const int64_t first = b_scale.elements() == p.n ? 0 : step.b_matrix * p.n;
    for (int64_t i = 0; i < p.n; ++i)
      scales[i] = a_scale * read_as_float(b_scale, b_scale.elements() == 1 ? 0 : first + i);
    step.finish.scales = scales;
    step.finish.float_bias = bias;
    product.multiply(step, to + batch * p.m * p.n, kernels::IntGemmResult::kFloat);
  }
  if (!is_float) kernels::convert(ElementType::kFloat, to, y.type, y.data, y.elements());
}

Cost cost(const NodeContext& c) {
  return cost_product(c, kInputs);
}

}  // namespace

extern const OpDef op_mat_mul_integer_to_float = {
    .domain = kMicrosoftDomain,
    .name = "MatMulIntegerToFloat",
    .inputs = {4, 7},
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
