// Gradients of what samples or multiplies along lines, and of determinants: expected numbers are worked out
// by hand from the definitions; tests/train checks them against differences in whole graphs.
#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr const char* kOurs = "ai.plimsoll";

TEST(CumProdGradient, EveryProductFromAnElementOn) {
  OpCase("CumProdGradient", 1, kOurs)
      .input<float>({3}, {2, 3, 4})
      .input<float>({3}, {1, 10, 100})
      .input<int64_t>({1}, {0})
      .run()
      .expect<float>(0, {3}, {1231, 820, 600});
}

TEST(CumProdGradient, ZerosNeedNoCare) {
  OpCase("CumProdGradient", 1, kOurs)
      .input<double>({2, 3}, {0, 3, 4, 2, 0, 5})
      .input<double>({2, 3}, {1, 10, 100, 1, 10, 100})
      .input<int64_t>({}, {-1})
      .run()
      .expect<double>(0, {2, 3}, {1231, 0, 0, 1, 1020, 0});
}

TEST(CumProdGradient, ExclusiveAndBackwards) {
  // y = {x1 * x2, x2, 1}.
  OpCase("CumProdGradient", 1, kOurs)
      .input<float>({3}, {7, 3, 4})
      .input<float>({3}, {1, 10, 100})
      .input<int64_t>({1}, {0})
      .attr("exclusive", int64_t{1})
      .attr("reverse", int64_t{1})
      .run()
      .expect<float>(0, {3}, {0, 4, 13});
}

TEST(DetGradient, CofactorsWithAndWithoutAnInverse) {
  OpCase("DetGradient", 1, kOurs)
      .input<float>({2, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 4})
      .input<float>({2}, {2, 1})
      .run()
      .expect<float>(0, {2, 2, 2}, {8, -6, -4, 2, 4, -2, -2, 1});
}

TEST(ResizeGradient, NearestAddsWhatWasCopied) {
  OpCase("ResizeGradient", 1, kOurs)
      .input<float>({1, 1, 1, 4}, {1, 2, 4, 8})
      .input<int64_t>({4}, {1, 1, 1, 2})
      .absent()
      .input<float>({4}, {1, 1, 1, 2})
      .attr("mode", int64_t{0})
      .attr("coordinates", int64_t{0})
      .run()
      .expect<float>(0, {1, 1, 1, 2}, {3, 12});
}

TEST(ResizeGradient, LinearByItsWeights) {
  OpCase("ResizeGradient", 1, kOurs)
      .input<double>({1, 1, 1, 4}, {1, 2, 4, 8})
      .input<int64_t>({4}, {1, 1, 1, 2})
      .absent()
      .input<float>({4}, {1, 1, 1, 2})
      .attr("mode", int64_t{1})
      .attr("coordinates", int64_t{0})
      .run()
      .expect<double>(0, {1, 1, 1, 2}, {1 + 1.5 + 1, 0.5 + 3 + 8});
}

TEST(GridSampleGradient, TheMiddleOfFourPixels) {
  OpCase("GridSampleGradient", 20, kOurs)
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<float>({1, 1, 1, 2}, {0, 0})
      .input<float>({1, 1, 1, 1}, {8})
      .attr("mode", "linear")
      .attr("align_corners", int64_t{1})
      .outputs(2)
      .run()
      .expect<float>(0, {1, 1, 2, 2}, {2, 2, 2, 2})
      .expect<float>(1, {1, 1, 1, 2}, {4, 8});
}

}  // namespace
}  // namespace plimsoll
