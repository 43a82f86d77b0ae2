#include "graph/gradient.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return c.make<MatMulAttrs>();
}

// A vector stands for a row (A) or a column (B): as the matrix that it is.
Edge* as_matrix(const GradientContext& c, Edge* edge, int64_t axis) {
  return edge->facts.type.rank() == 1 ? c.op("Unsqueeze", {edge, c.build.integers({axis})}) : edge;
}

// Rows of all batches below each other: a product with them sums over the batches.
Edge* as_rows(const GradientContext& c, Edge* edge) {
  const auto rank = static_cast<int64_t>(edge->facts.type.rank());
  return rank == 2 ? edge : c.op("Flatten", {edge}, c.attributes().set("axis", rank - 1));
}

Edge* product(const GradientContext& c, Edge* a, Edge* b, bool trans_a, bool trans_b) {
  return c.own_op("FusedMatMul", {a, b},
                  c.attributes().set("trans_a", int64_t{trans_a}).set("trans_b", int64_t{trans_b}));
}

void gradient(GradientContext& c) {
  if (!c.ranked(kMatMulA) || !c.ranked(kMatMulB)) c.reject("its gradient needs the ranks of its inputs");
  Edge* a = as_matrix(c, c.in(kMatMulA), 0);
  Edge* b = as_matrix(c, c.in(kMatMulB), 1);
  std::vector<int64_t> missing;  // of the output, because a vector has no such dimension
  if (c.rank(kMatMulB) == 1) missing.push_back(-1);
  if (c.rank(kMatMulA) == 1) missing.push_back(-2);
  Edge* dy = c.gradient();
  if (!missing.empty()) dy = c.op("Unsqueeze", {dy, c.build.integers(missing)});
  const auto give = [&](size_t i, Edge* matrix, int64_t vector_axis) {
    if (c.rank(i) > 1) return c.set_broadcast(i, matrix);
    matrix = c.op("Squeeze", {matrix, c.build.integers({vector_axis})});
    c.set_broadcast(i, matrix);
  };
  const bool rows = b->facts.type.rank() == 2;
  if (c.wants(kMatMulA)) give(kMatMulA, product(c, dy, b, false, true), -2);
  if (c.wants(kMatMulB))
    give(kMatMulB,
         rows ? product(c, as_rows(c, a), as_rows(c, dy), true, false) : product(c, a, dy, true, false), -1);
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
