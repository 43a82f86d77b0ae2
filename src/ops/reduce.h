// What the Reduce operators share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

enum class Reduction { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

struct ReduceAttrs {
  std::span<const int64_t> axes;
  bool keeps_dims = true;
  bool empty_means_none = false;
};

// The opset from which the axes are an input: 13 for ReduceSum, 18 for the others.
template <int kAxesInput>
const void* reduce_attrs(AttrContext& c);
void infer_reduce(InferContext& c, Reduction kind);
void run_reduce(const RunContext& c, Reduction kind);
// y[r] = the reduction of row r of the float tensor x, of rows of `cols` elements.
void reduce_rows(const RunContext& c, Reduction kind, int64_t rows, int64_t cols);
Cost cost_reduce(const NodeContext& c);
void layout_reduce(LayoutContext& c);
void region_reduce(RegionContext& c);
void gradient_reduce(GradientContext& c, Reduction kind);

template <Reduction kind>
void infer_reduction(InferContext& c) {
  infer_reduce(c, kind);
}
template <Reduction kind>
void run_reduction(const RunContext& c) {
  run_reduce(c, kind);
}

template <Reduction kind>
void gradient_reduction(GradientContext& c) {
  gradient_reduce(c, kind);
}

template <Reduction kind>
constexpr OpDef reduce_op(std::string_view name) {
  return {.name = name,
          .inputs = {1, 2},
          .attrs = reduce_attrs < kind == Reduction::kSum ? 13 : 18 >,
          .infer = infer_reduction<kind>,
          .run = run_reduction<kind>,
          .cost = cost_reduce,
          .layout = layout_reduce,
          .region = region_reduce,
          .gradient = gradient_reduction<kind>};
}

}  // namespace plimsoll
