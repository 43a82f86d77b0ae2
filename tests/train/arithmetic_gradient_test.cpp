// Elementwise arithmetic and reductions against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

TEST(Gradients, Add) {
  GradientCase("Add").input({2, 3}).input({2, 3}).check();
  GradientCase("Add").input({4, 2, 3}).input({3}).check();
  GradientCase("Add").input({2, 1}).input({3, 1, 5}).check();
  GradientCase("Add").input({2, 3}).symbol(0, "n").input({3}).check();
}

TEST(Gradients, Mul) {
  GradientCase("Mul").input({2, 3}).input({2, 3}).check();
  GradientCase("Mul").input({2, 1, 3}).input({4, 1}).check();
  GradientCase("Mul").input({}).input({4, 3}).check();
}

TEST(Gradients, MatMul) {
  GradientCase("MatMul").input({3, 4}).input({4, 5}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({4, 5}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({2, 4, 5}).check();
  GradientCase("MatMul").input({3, 4}).input({2, 4, 5}).check();
  GradientCase("MatMul").input({2, 1, 3, 4}).input({5, 4, 2}).check();
  GradientCase("MatMul").input({4}).input({4, 5}).check();
  GradientCase("MatMul").input({3, 4}).input({4}).check();
  GradientCase("MatMul").input({4}).input({4}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({4}).check();
}

TEST(Gradients, Relu) {
  GradientCase("Relu").input({3, 7}).check();
}

TEST(Gradients, ReduceSum) {
  GradientCase("ReduceSum").input({2, 3, 4}).fixed<int64_t>({1}, {1}).check();
  GradientCase("ReduceSum")
      .input({2, 3, 4})
      .fixed<int64_t>({2}, {0, -1})
      .attr("keepdims", int64_t{0})
      .check();
  GradientCase("ReduceSum").input({2, 3, 4}).check();
  GradientCase("ReduceSum", 11).input({2, 3, 4}).attr("axes", std::vector<int64_t>{-2}).check();
  GradientCase("ReduceSum").input({2, 3}).attr("noop_with_empty_axes", int64_t{1}).check();
  GradientCase("ReduceSum").input({2, 3}).symbol(0, "n").fixed<int64_t>({1}, {0}).check();
}

}  // namespace
}  // namespace plimsoll
