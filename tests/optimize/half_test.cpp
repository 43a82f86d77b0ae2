// 16-bit graphs are fused as f32 ones are. What the fused forms compute, tests/kernels and tests/reference
// say.
#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// A constant of 16 bits.
Edge* halves(GraphCase& c, const std::vector<int64_t>& dims, float first, ElementType type) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  std::vector<Float16> f16;
  std::vector<BFloat16> bf16;
  for (int64_t i = 0; i < count; ++i) {
    const float value = first + 0.125f * static_cast<float>(i % 5);
    f16.push_back(Float16(value)), bf16.push_back(BFloat16(value));
  }
  return type == ElementType::kFloat16 ? c.constant<Float16>(dims, f16) : c.constant<BFloat16>(dims, bf16);
}

bool apply(GraphCase& c, bool (*pass)(Graph&, const OptimizeOptions&)) {
  c.ready();
  return pass(c.root(), {});
}

class Halves : public testing::TestWithParam<ElementType> {};

TEST_P(Halves, ConvolutionTakesNormalizationAndActivation) {
  GraphCase c;
  const ElementType type = GetParam();
  Edge* x = c.input({1, 3, 5, 5}, type);
  Edge* y = c.node("Conv", {x, halves(c, {4, 3, 1, 1}, 0.25f, type)});
  y = c.node("BatchNormalization", {y, halves(c, {4}, 0.5f, type), halves(c, {4}, 0, type),
                                    halves(c, {4}, 0.25f, type), halves(c, {4}, 1, type)});
  c.output(c.node("Relu", {y}));
  EXPECT_TRUE(apply(c, fuse_conv_affine));
  EXPECT_EQ(c.fused("FusedConv"), 1);
}

TEST_P(Halves, ProductTakesItsBias) {
  GraphCase c;
  const ElementType type = GetParam();
  Edge* x = c.input({3, 8}, type);
  Edge* y = c.node("MatMul", {x, halves(c, {8, 4}, 0.25f, type)});
  y = c.node("Add", {y, halves(c, {4}, 0.5f, type)});
  c.output(y);
  EXPECT_TRUE(apply(c, fuse_matmul));
  EXPECT_EQ(c.fused("FusedMatMul"), 1);
}

TEST_P(Halves, GeluIsRecognizedByItsRoundedConstant) {
  GraphCase c(20);
  const ElementType type = GetParam();
  Edge* x = c.input({3, 8}, type);
  Edge* e = c.node("Erf", {c.node("Div", {x, halves(c, {}, 1.41421356f, type)})});
  Edge* y = c.node("Mul", {x, c.node("Add", {e, halves(c, {}, 1, type)})});
  y = c.node("Mul", {y, halves(c, {}, 0.5f, type)});
  c.output(y);
  EXPECT_TRUE(apply(c, recognize_gelu));
}

INSTANTIATE_TEST_SUITE_P(Types, Halves, testing::Values(ElementType::kFloat16, ElementType::kBFloat16),
                         [](const auto& type) {
                           return type.param == ElementType::kFloat16 ? "float16" : "bfloat16";
                         });

}  // namespace
}  // namespace plimsoll
