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

// The other reductions, and every way to name axes.
TEST(Gradients, Reductions) {
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceLogSumExp", "ReduceSumSquare"}) {
    GradientCase(op).distinct({2, 3, 4}).fixed<int64_t>({1}, {1}).check();
    GradientCase(op).distinct({2, 3, 4}).fixed<int64_t>({2}, {0, -1}).attr("keepdims", int64_t{0}).check();
    GradientCase(op).distinct({2, 3}).check();
    GradientCase(op).distinct({2, 3}).attr("noop_with_empty_axes", int64_t{1}).check();
    GradientCase(op, 13).distinct({2, 3, 4}).attr("axes", std::vector<int64_t>{-2}).check();
    GradientCase(op).distinct({2, 3}).symbol(0, "n").fixed<int64_t>({1}, {0}).check();
  }
  GradientCase("ReduceLogSum").input({2, 3, 4}, 0.5, 2).fixed<int64_t>({1}, {1}).check();
}

TEST(Gradients, ProductsWithZeros) {
  GradientCase("ReduceProd")
      .at({3, 3}, {0, 0.7, 1.3, 0, 0, 2.1, 1.1, -0.6, 0.9})
      .fixed<int64_t>({1}, {1})
      .check();
}

TEST(Gradients, Binary) {
  GradientCase("Sub").input({2, 3}).input({4, 1, 3}).check();
  GradientCase("Div").input({2, 3}).input({3}, 0.6, 2).check();
  GradientCase("Mod").input({2, 3}, 1, 9).input({3}, 0.6, 2).attr("fmod", int64_t{1}).check();
  GradientCase("Mod").input({2, 3}, -9, -1).input({2, 1}, 0.6, 2).attr("fmod", int64_t{1}).check();
}

TEST(Gradients, Pow) {
  GradientCase("Pow").input({2, 3}, 0.3, 2).input({3}).check();
  for (double exponent : {2.0, 3.0, 0.5, -1.0, 1.7})
    GradientCase("Pow").input({2, 3}, 0.3, 2).fixed<double>({}, {exponent}).only_double().check();
  GradientCase("Pow").input({2, 3}).fixed<int64_t>({}, {3}).check();
  GradientCase("Pow").at({3}, {0, 0.3, -1.2}).fixed<int64_t>({}, {2}).check();
  GradientCase("Pow").input({2, 2}, 0.3, 2).fixed<int64_t>({2}, {0, 3}).check();
}

TEST(Gradients, Unary) {
  for (const char* op : {"Neg", "Abs", "Exp", "Erf", "Sin", "Cos", "Sinh", "Cosh", "Asinh", "Atan", "Sigmoid",
                         "Tanh", "Identity", "Floor", "Ceil", "Sign", "Round"})
    GradientCase(op).input({3, 5}).check();
  for (const char* op : {"Sqrt", "Log", "Reciprocal"}) GradientCase(op).input({3, 5}, 0.3, 2).check();
  for (const char* op : {"Tan", "Asin", "Acos", "Atanh"}) GradientCase(op).input({3, 5}, -0.9, 0.9).check();
  GradientCase("Acosh").input({3, 5}, 1.2, 3).check();
}

TEST(Gradients, Activations) {
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "Softplus", "Softsign",
                         "Gelu", "Mish", "ThresholdedRelu", "Shrink"})
    GradientCase(op).input({3, 5}).check();
  GradientCase("HardSwish").input({40}, -5, 5).check();
  GradientCase("LeakyRelu").input({9}).attr("alpha", -0.3f).check();
  GradientCase("Elu").input({9}).attr("alpha", 0.7f).check();
  GradientCase("Celu").input({9}).attr("alpha", 0.7f).check();
  GradientCase("Selu").input({9}).attr("alpha", -0.7f).check();
  GradientCase("Gelu").input({9}).attr("approximate", "tanh").check();
  GradientCase("Swish", 24).input({9}).attr("alpha", 1.3f).check();
  GradientCase("PRelu").input({2, 3, 4}).input({3, 1}).check();
  GradientCase("QuickGelu", 1, "com.microsoft").input({9}).check();
  GradientCase("FastGelu", 1, "com.microsoft").input({2, 5}).input({5}).check();
  GradientCase("BiasGelu", 1, "com.microsoft").input({2, 5}).input({5}).check();
}

// What the gradients of elementwise functions write is differentiated again where a Gradient stands behind a
// Gradient.
TEST(Gradients, UnaryGradient) {
  for (const char* f : {"Erf", "Gelu", "GeluTanh", "HardSwish", "Swish"})
    GradientCase("UnaryGradient", 1, "ai.plimsoll").input({3, 5}).input({3, 5}).attr("function", f).check();
  for (const char* f : {"Sigmoid", "Tanh"})
    GradientCase("UnaryGradient", 1, "ai.plimsoll")
        .input({9}, 0.1, 0.9)
        .input({9})
        .attr("function", f)
        .check();
  GradientCase("UnaryGradient", 1, "ai.plimsoll")
      .input({40}, -5, 5)
      .input({40})
      .attr("function", "Swish")
      .attr("alpha", 1.7f)
      .check();
  GradientCase("UnaryGradient", 1, "ai.plimsoll")
      .input({40}, -5, 5)
      .input({40})
      .attr("function", "HardSwish")
      .check();
}

TEST(Gradients, Variadic) {
  GradientCase("Sum").input({2, 3}).input({3}).input({4, 1, 1}).check();
  GradientCase("Mean").input({2, 3}).input({3}).input({4, 1, 1}).check();
  GradientCase("Max").distinct({12}).input({12}).check();
  GradientCase("Min").distinct({4, 3}).input({3}).input({4, 1}).check();
}

TEST(Gradients, Where) {
  GradientCase("Where")
      .given<bool>({2, 3}, {true, false, true, true, false, false})
      .input({3})
      .input({2, 1})
      .check();
}

TEST(Gradients, Clip) {
  GradientCase("Clip").input({10}).fixed<double>({}, {-0.7}).fixed<double>({}, {1.1}).only_double().check();
  GradientCase("Clip").input({10}).at({}, {-0.7}).at({}, {1.1}).check();
  GradientCase("Clip").input({10}).absent().at({}, {0.8}).check();
  GradientCase("Clip", 6).input({10}).attr("min", -0.8f).check();
}

}  // namespace
}  // namespace plimsoll
