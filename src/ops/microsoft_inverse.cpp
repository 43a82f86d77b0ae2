// Inverses, in double.
#include <atomic>
#include <cmath>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/elimination.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  c.expect_rank(0, 2, InferContext::kMaxRank);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto dims = c.dims(0);
  unify(c, dims[dims.size() - 1], dims[dims.size() - 2]);
  c.set_output(0, c.type(0), dims);
}

void alias(AliasContext& c) {
  c.overwrite(0);  // a matrix is read whole before it is written
}

// A matrix and what becomes its inverse, per thread.
const void* select(SelectContext& c) {
  if (c.ranked(0)) c.scratch(Dim(c.threads) * c.dims(0).back() * c.dims(0).back() * Dim(16));
  return nullptr;
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (y.elements() == 0) return;
  const int64_t n = x.dims.back(), count = x.elements() / (n * n);
  std::atomic<int64_t> singular{-1};
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    double* matrix = reinterpret_cast<double*>(c.scratch) + thread * 2 * n * n;
    double* inverse = matrix + n * n;
    for (int64_t i = count * thread / c.threads; i < count * (thread + 1) / c.threads; ++i) {
      read_floats(x, i * n * n, n * n, matrix);
      const std::optional<double> determinant = invert(matrix, inverse, n);
      if (!determinant || std::isnan(*determinant)) singular = i;
      write_floats(y, i * n * n, n * n, inverse);
    }
  });
  if (singular >= 0)
    fail(ErrorCode::kInvalidArgument, "{}: matrix {} has no inverse", c.node->label(), singular.load());
}

Cost cost(const NodeContext& c) {
  return {checked_mul(2, (product(c.dims(0)) * c.dims(0).back()).value()), tensor_bytes(c)};
}

// -Y^T dY Y^T
void gradient(GradientContext& c) {
  const auto product = [&](Edge* a, Edge* b, bool trans_a, bool trans_b, float alpha) {
    return c.own_op(
        "FusedMatMul", {a, b},
        c.attributes().set("alpha", alpha).set("trans_a", int64_t{trans_a}).set("trans_b", int64_t{trans_b}));
  };
  c.set(0, product(product(c.out(0), c.gradient(), true, false, -1), c.out(0), false, true, 1));
}

}  // namespace

extern const OpDef op_microsoft_inverse = {.domain = kMicrosoftDomain,
                                           .name = "Inverse",
                                           .infer = infer,
                                           .alias = alias,
                                           .select = select,
                                           .run = run,
                                           .cost = cost,
                                           .gradient = gradient};

}  // namespace plimsoll
