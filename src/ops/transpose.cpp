#include <algorithm>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

struct Attrs {
  std::span<const int64_t> perm;  // empty: reverse
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->perm = c.integers("perm");
  return a;
}

// The input's axis that becomes `axis` of the output.
size_t source_axis(const Attrs& a, size_t axis, size_t rank) {
  return a.perm.empty() ? rank - 1 - axis : static_cast<size_t>(a.perm[axis]);
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  const Attrs& a = c.attrs<Attrs>();
  if (!c.ranked(0)) {
    if (a.perm.empty()) return c.set_unranked_output(0, c.type(0));
    return c.set_output(0, c.type(0), unknown_dims(c, a.perm.size()));
  }
  const size_t rank = c.rank(0);
  if (!a.perm.empty()) {
    const auto in_range = [&](int64_t p) { return p >= 0 && p < static_cast<int64_t>(rank); };
    if (a.perm.size() != rank || !std::all_of(a.perm.begin(), a.perm.end(), in_range))
      c.reject("perm {} is no permutation of the axes of shape {}", to_string(a.perm), to_string(c.dims(0)));
    resolve_axes(c, a.perm, rank);
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(c.dims(0)[source_axis(a, i, rank)]);
  c.set_output(0, c.type(0), dims);
  if (rank > 1) return;
  if (const auto values = c.values(0)) c.set_values(0, *values);
}

// A view if the axes that are not 1 keep their order.
void alias(AliasContext& c) {
  if (!c.ranked(0)) return;
  size_t least = 0;
  for (size_t i = 0; i < c.rank(0); ++i) {
    const size_t axis = source_axis(c.attrs<Attrs>(), i, c.rank(0));
    if (c.dims(0)[axis] == Dim(1)) continue;
    if (axis < least) return;
    least = axis;
  }
  c.view(0);
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const TensorView& out = c.outputs[0];
  kernels::CopyShape shape;
  int64_t target = 1;
  for (size_t i = out.rank(); i-- > 0;) {
    shape.add(out.dims[i], stride_of(in.dims, source_axis(c.attrs<Attrs>(), i, in.rank())), target);
    target *= out.dims[i];
  }
  if (const int bits = element_bits(in.type); bits < 8) {
    kernels::strided_copy_bits(out.data, 0, in.data, 0, shape, bits);
    return clear_padding_bits(out.data, bits, out.elements());
  }
  kernels::strided_copy(out.data, in.data, shape, width_of(in.type), c.threads);
}

// One that makes the move, or unmakes it, goes away with its neighbours; others stay.
void layout(LayoutContext& c) {
  const size_t rank = c.rank(0);
  if (!c.ranked(0) || rank < 3) return;
  const std::vector<int64_t> order = LayoutContext::order(rank);
  bool moves = true, moves_back = true;
  for (size_t i = 0; i < rank; ++i) {
    const size_t source = source_axis(c.attrs<Attrs>(), i, rank);
    moves &= source == static_cast<size_t>(order[i]);
    moves_back &= static_cast<int64_t>(i) == order[source];
  }
  if (moves) {
    c.moved({0});
    c.keep_output(0);
    c.layout.mover = LayoutMover::kMoves;
  } else if (moves_back) {
    c.moved({});
    c.layout.mover = LayoutMover::kMovesBack;
  }
}

void region(RegionContext& c) {
  for (size_t i = 0; i < c.rank(0); ++i)
    c.needs[0][source_axis(c.attrs<Attrs>(), i, c.rank(0))] = c.wanted(i);
  c.runs_on_parts = true;
}

void gradient(GradientContext& c) {
  if (!c.ranked(0)) c.reject("its gradient needs the rank of its input");
  std::vector<int64_t> inverse(c.rank(0));
  for (size_t i = 0; i < inverse.size(); ++i)
    inverse[source_axis(c.attrs<Attrs>(), i, inverse.size())] = static_cast<int64_t>(i);
  c.set(0, c.op("Transpose", {c.gradient()}, c.attributes().set("perm", std::span<const int64_t>(inverse))));
}

}  // namespace

extern const OpDef op_transpose = {
    .name = "Transpose",
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .layout = layout,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll
