#include "ops/integer_product.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr size_t kA = 0, kAScale = 1, kAZero = 2, kB = 3, kBScale = 4, kBZero = 5, kC = 6, kYScale = 7,
                 kYZero = 8;

struct QGemmAttrs {
  float alpha = 1;
  ProductInputs inputs;
};

struct QGemmChoice {
  IntegerProduct product;
  int64_t scales_at = 0, bias_at = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<QGemmAttrs>();
  a->alpha = c.real("alpha", 1.0f);
  a->inputs = {.a = kA,
               .b = kB,
               .a_zero = kAZero,
               .b_zero = kBZero,
               .trans_a = c.integer("transA", 0) != 0,
               .trans_b = c.integer("transB", 0) != 0};
  return a;
}

void expect_one(const InferContext& c, size_t i) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const Dim count = product(c.dims(i));
  if (count.is_constant() && count.value() != 1)
    c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<QGemmAttrs>();
  for (size_t i : {kA, kB}) {
    c.expect_type(i, kByteTypes);
    if (c.ranked(i)) c.expect_rank(i, 2, 2);
  }
  for (size_t i : {kAScale, kBScale}) c.expect_type(i, types(ElementType::kFloat));
  for (size_t i : {kAScale, kAZero, kYScale, kYZero}) expect_one(c, i);
  ElementType output = ElementType::kFloat;
  if (c.has_input(kYZero)) {
    c.expect_type(kYZero, kByteTypes);
    output = c.type(kYZero);
    if (!c.has_input(kYScale)) c.reject("a zero point of Y needs its scale, input {}", kYScale);
  }
  if (c.has_input(kYScale)) {
    c.expect_type(kYScale, types(ElementType::kFloat));
    if (!c.has_input(kYZero)) output = c.type(kA);
  }
  if (c.has_input(kC)) c.expect_type(kC, types(ElementType::kInt32));
  const auto dims = infer_product(c, a.inputs);
  if (!dims) return c.set_unranked_output(0, output);
  expect_per_column(c, kBScale, a.inputs);
  if (c.has_input(kC) && c.ranked(kC)) {
    const auto bias = c.dims(kC);
    bool fits = bias.size() <= 2;
    for (size_t i = 0; fits && i < bias.size(); ++i) {
      const Dim y = (*dims)[2 - bias.size() + i];
      fits = !bias[i].is_constant() || bias[i] == Dim(1) || !y.is_constant() || bias[i] == y;
    }
    if (!fits) c.reject("input {}: shape {} does not broadcast to {}", kC, to_string(bias), to_string(*dims));
  }
  c.set_output(0, output, *dims);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<QGemmChoice>();
  choice->product = select_product(c, c.attrs<QGemmAttrs>().inputs);
  if (!c.output(0).type.ranked) return choice;
  choice->scales_at = c.scratch(c.output(0).type.dims[1] * Dim(4));
  choice->bias_at = c.scratch(c.output(0).type.dims[1] * Dim(4));
  return choice;
}

void pack(const PackContext& c) {
  pack_product(c, c.attrs<QGemmAttrs>().inputs);
}

// C for the columns of one row.
const int32_t* bias_of(const RunContext& c, const QGemmChoice& choice, int64_t row) {
  if (!c.has_input(kC)) return nullptr;
  const TensorView& bias = c.inputs[kC];
  const int64_t n = choice.product.n, cols = bias.rank() == 0 ? 1 : bias.dims[bias.rank() - 1];
  const bool rows = bias.rank() == 2 && bias.dims[0] > 1;
  const int32_t* from = bias.as<int32_t>() + (rows ? row * cols : 0);
  if (cols == n) return from;
  int32_t* all = c.scratch_as<int32_t>(choice.bias_at);
  for (int64_t i = 0; i < n; ++i) all[i] = from[0];
  return all;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<QGemmAttrs>();
  const auto& choice = c.choice<QGemmChoice>();
  const IntegerProduct& p = choice.product;
  if (c.outputs[0].elements() == 0) return;
  const ProductRun product(c, a.inputs, p);
  ProductStep step = product.step(0);
  const TensorView& b_scale = c.inputs[kBScale];
  float* scales = c.scratch_as<float>(choice.scales_at);
  for (int64_t i = 0; i < p.n; ++i) {
    scales[i] =
        a.alpha * *c.inputs[kAScale].as<float>() * b_scale.as<float>()[b_scale.elements() == 1 ? 0 : i];
    if (c.has_input(kYScale)) scales[i] /= *c.inputs[kYScale].as<float>();
  }
  step.finish.scales = scales;
  if (c.has_input(kYZero))
    step.finish.zero_point = integer_at(c.inputs[kYZero].type, c.inputs[kYZero].data, 0);
  const kernels::IntGemmResult type = result_type(c.outputs[0].type);
  const bool by_rows = c.has_input(kC) && c.inputs[kC].rank() == 2 && c.inputs[kC].dims[0] > 1;
  if (!by_rows) {
    step.finish.bias = bias_of(c, choice, 0);
    return product.multiply(step, c.outputs[0].data, type);
  }
  const int64_t row_bytes = element_bytes(c.outputs[0].type, p.n);
  for (int64_t row = 0; row < p.m; ++row) {
    step.finish.bias = bias_of(c, choice, row);
    product.multiply_row(step, row, c.outputs[0].data + row * row_bytes, type);
  }
}

Cost cost(const NodeContext& c) {
  return cost_product(c, c.attrs<QGemmAttrs>().inputs);
}

}  // namespace

extern const OpDef op_qgemm = {
    .domain = kMicrosoftDomain,
    .name = "QGemm",
    .inputs = {6, 9},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
