// A is quantized as DynamicQuantizeLinear does, then multiplied by the quantized B.
#include "ops/dynamic_quantization.h"
#include "ops/integer_product.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr size_t kBScale = 2, kBias = 4;
constexpr ProductInputs kInputs = {.a = 0, .b = 1, .b_zero = 3};

struct DynamicChoice {
  IntegerProduct product;
  int64_t a_at = 0, scales_at = 0;
};

void infer(InferContext& c) {
  c.expect_type(kInputs.a, types(ElementType::kFloat));
  c.expect_type(kInputs.b, kByteTypes);
  c.expect_type(kBScale, types(ElementType::kFloat));
  if (c.has_input(kBias)) c.expect_type(kBias, types(ElementType::kFloat));
  const auto dims = infer_product(c, kInputs);
  if (!dims) return c.set_unranked_output(0, ElementType::kFloat);
  expect_per_column(c, kBScale, kInputs);
  if (c.has_input(kBias) && c.ranked(kBias)) {
    const Dim columns = c.rank(kInputs.b) > 1 ? c.dims(kInputs.b).back() : Dim(1),
              found = product(c.dims(kBias));
    if (found.is_constant() && columns.is_constant() && !(found == columns))
      c.reject("input {}: expected {} values, found shape {}", kBias, columns.value(),
               to_string(c.dims(kBias)));
  }
  c.set_output(0, ElementType::kFloat, *dims);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<DynamicChoice>();
  choice->product = select_product(c, kInputs);
  if (!c.ranked(kInputs.a) || !c.ranked(kInputs.b)) return choice;
  choice->a_at = c.scratch(product(c.dims(kInputs.a)));
  choice->scales_at = c.scratch(c.rank(kInputs.b) > 1 ? c.dims(kInputs.b).back() * Dim(4) : Dim(4));
  return choice;
}

void pack(const PackContext& c) {
  pack_product(c, kInputs);
}

void run(const RunContext& c) {
  const auto& choice = c.choice<DynamicChoice>();
  const IntegerProduct& p = choice.product;
  const TensorView &a = c.inputs[kInputs.a], &b_scale = c.inputs[kBScale];
  const DynamicScale found = dynamic_scale(a.as<float>(), a.elements(), c.threads);
  uint8_t* quantized = c.scratch_as<uint8_t>(choice.a_at);
  kernels::quantize_8(a.as<float>(), a.elements(), found.scale, found.zero_point, 0, quantized, c.threads);
  ProductRun product(c, kInputs, p);
  product.set_a(quantized, found.zero_point);
  float* scales = c.scratch_as<float>(choice.scales_at);
  for (int64_t batch = 0; batch < p.batches; ++batch) {
    ProductStep step = product.step(batch);
    const int64_t first = b_scale.elements() == p.n ? 0 : step.b_matrix * p.n;
    for (int64_t i = 0; i < p.n; ++i)
      scales[i] = found.scale * b_scale.as<float>()[b_scale.elements() == 1 ? 0 : first + i];
    step.finish.scales = scales;
    if (c.has_input(kBias)) step.finish.float_bias = c.inputs[kBias].as<float>();
    product.multiply(step, c.outputs[0].as<float>() + batch * p.m * p.n, kernels::IntGemmResult::kFloat);
  }
}

Cost cost(const NodeContext& c) {
  return cost_product(c, kInputs);
}

}  // namespace

extern const OpDef op_dynamic_quantize_mat_mul = {
    .domain = kMicrosoftDomain,
    .name = "DynamicQuantizeMatMul",
    .inputs = {3, 5},
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
