#include "ops/integer_product.h"

namespace plimsoll {
namespace {

constexpr ProductInputs kInputs = {.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};

void infer(InferContext& c) {
  c.expect_type(kInputs.a, kByteTypes);
  c.expect_type(kInputs.b, kByteTypes);
  const auto dims = infer_product(c, kInputs);
  if (!dims) return c.set_unranked_output(0, ElementType::kInt32);
  c.set_output(0, ElementType::kInt32, *dims);
}

const void* select(SelectContext& c) {
  return c.make<IntegerProduct>(select_product(c, kInputs));
}

void pack(const PackContext& c) {
  pack_product(c, kInputs);
}

void run(const RunContext& c) {
  const auto& p = c.choice<IntegerProduct>();
  const ProductRun product(c, kInputs, p);
  for (int64_t batch = 0; batch < p.batches; ++batch)
    product.multiply(product.step(batch), c.outputs[0].as<int32_t>() + batch * p.m * p.n,
                     kernels::IntGemmResult::kInt32);
}

Cost cost(const NodeContext& c) {
  return cost_product(c, kInputs);
}

}  // namespace

extern const OpDef op_mat_mul_integer = {
    .name = "MatMulInteger",
    .inputs = {2, 4},
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
