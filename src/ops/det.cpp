// Determinants, in double.
#include <algorithm>

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
  c.set_output(0, c.type(0), dims.first(dims.size() - 2));
}

// A matrix per thread.
const void* select(SelectContext& c) {
  if (c.ranked(0)) c.scratch(Dim(c.threads) * c.dims(0).back() * c.dims(0).back() * Dim(8));
  return nullptr;
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const int64_t n = x.dims.back(), count = y.elements();
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    auto* matrix = reinterpret_cast<double*>(c.scratch) + thread * n * n;
    for (int64_t i = count * thread / c.threads; i < count * (thread + 1) / c.threads; ++i) {
      read_floats(x, i * n * n, n * n, matrix);
      const double result = determinant_of(matrix, n);
      write_floats(y, i, 1, &result);
    }
  });
}

Cost cost(const NodeContext& c) {
  const double n = static_cast<double>(c.dims(0).back().value());
  const double operations = static_cast<double>(product(c.dims(0)).value()) * n * (2.0 / 3);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

void gradient(GradientContext& c) {
  c.set(0, c.own_op("DetGradient", {c.in(0), c.gradient()}, c.attributes()));
}

}  // namespace

extern const OpDef op_det = {
    .name = "Det",
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
