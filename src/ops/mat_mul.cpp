#include "graph/gradient.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return c.make<MatMulAttrs>();
}

// The last two dimensions change places.
Edge* swapped(GradientContext& c, Edge* edge) {
  std::vector<int64_t> perm(edge->facts.type.rank());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return c.op("Transpose", {edge}, c.attributes().set("perm", std::span<const int64_t>(perm)));
}

// All dimensions but the last as one.
Edge* as_rows(GradientContext& c, Edge* edge) {
  if (edge->facts.type.rank() == 2) return edge;
  return c.op("Reshape", {edge, c.build.integers({-1, edge->facts.type.dims.back().constant().value_or(0)})});
}

void gradient(GradientContext& c) {
  if (!c.ranked(0) || !c.ranked(1)) c.reject("its gradient needs the ranks of its inputs");
  // A vector is a matrix of one row or one column.
  const auto axis = [&](int64_t i) { return c.build.integers({i}); };
  Edge *a = c.in(0), *b = c.in(1), *dy = c.gradient();
  const bool row = c.rank(0) == 1, column = c.rank(1) == 1;
  if (column) b = c.op("Unsqueeze", {b, axis(1)}), dy = c.op("Unsqueeze", {dy, axis(-1)});
  if (row) a = c.op("Unsqueeze", {a, axis(0)}), dy = c.op("Unsqueeze", {dy, axis(-2)});
  const size_t rank_a = a->facts.type.rank(), rank_b = b->facts.type.rank();
  if (c.wants(0)) {
    Edge* da = c.summed_to(c.op("MatMul", {dy, swapped(c, b)}), a);
    c.set(0, row ? c.op("Squeeze", {da, axis(0)}) : da);
  }
  if (c.wants(1)) {
    // One weight for a whole batch: one product sums over it.
    const bool shared = rank_b == 2 && rank_a > 2 && a->facts.type.dims.back().is_constant() &&
                        dy->facts.type.dims.back().is_constant();
    Edge* db = shared ? c.op("MatMul", {swapped(c, as_rows(c, a)), as_rows(c, dy)})
                      : c.summed_to(c.op("MatMul", {swapped(c, a), dy}), b);
    c.set(1, column ? c.op("Squeeze", {db, axis(1)}) : db);
  }
}

}  // namespace

extern const OpDef op_mat_mul = {
    .name = "MatMul",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer_matmul,
    .select = select_matmul,
    .pack = pack_matmul,
    .run = run_matmul,
    .cost = cost_matmul,
    .region = region_matmul,
    .gradient = gradient,
};

}  // namespace plimsoll
