// Operators that passes make of several: expected numbers are those of the operators they stand for, by hand.
// That passes make them where they should is in tests/optimize, their kernels at all sizes in tests/kernels.
#include <limits>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr const char* kOurs = "ai.plimsoll";

// 1 -> 2 channels by 1x1, then the sum of a 3x3 window of each, which on 2x2 pixels is the sum of all.
TEST(ConvChain, OneByOneThenDepthwise) {
  OpCase("ConvChain", 1, kOurs)
      .input<float>({1, 2, 2, 1}, {1, 2, 3, 4})
      .absent()
      .input<float>({2, 1, 1, 1}, {2, 3})
      .input<float>({2}, {0, 1})
      .absent()
      .input<float>({2, 1, 3, 3}, std::vector<float>(18, 1.0f))
      .input<float>({2}, {0.5f, 0})
      .absent()
      .attr("group", std::vector<int64_t>{1, 2})
      .attr("strides", std::vector<int64_t>{1, 1, 1, 1})
      .attr("pads", std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1})
      .run_alone()
      .expect<float>(0, {1, 2, 2, 2}, {20.5f, 34, 20.5f, 34, 20.5f, 34, 20.5f, 34});
}

TEST(ConvChain, RefusesAWideConvolutionThatIsNotDepthwise) {
  OpCase op("ConvChain", 1, kOurs);
  op.input<float>({1, 2, 2, 1}, {1, 2, 3, 4})
      .absent()
      .input<float>({2, 1, 3, 3}, std::vector<float>(18, 1.0f))
      .absent()
      .absent()
      .input<float>({2, 1, 1, 1}, {1, 1})
      .absent()
      .absent()
      .attr("group", std::vector<int64_t>{1, 2})
      .attr("strides", std::vector<int64_t>{1, 1, 1, 1})
      .attr("pads", std::vector<int64_t>{1, 1, 1, 1, 0, 0, 0, 0});
  EXPECT_THROW(op.run(), Error);
}

constexpr float kMore = 0.7310586f, kLess = 0.2689414f;  // the softmax of 1 and 0

TEST(FusedAttention, WeighsTheValues) {
  OpCase("FusedAttention", 1, kOurs)
      .input<float>({1, 1, 1, 2}, {2, 0})
      .input<float>({1, 1, 2, 2}, {1, 0, 0, 1})
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .attr("scale", 0.5f)
      .run()
      .expect<float>(0, {1, 1, 1, 2}, {kMore + 3 * kLess, 2 * kMore + 4 * kLess});
}

// Two heads whose rows lie between each other, as a Transpose in front would have it.
TEST(FusedAttention, SeesHeadsThroughAPermutation) {
  const std::vector<int64_t> perm = {0, 2, 1, 3};
  OpCase("FusedAttention", 1, kOurs)
      .input<float>({1, 1, 2, 1}, {1, 0})
      .input<float>({1, 2, 2, 1}, {1, 5, 0, 7})
      .input<float>({1, 2, 2, 1}, {1, 10, 3, 30})
      .attr("perm_q", perm)
      .attr("perm_k", perm)
      .attr("perm_v", perm)
      .attr("perm_y", perm)
      .run()
      .expect<float>(0, {1, 1, 2, 1}, {kMore + 3 * kLess, 20});
}

TEST(FusedAttention, AnAddendHidesAKey) {
  const float never = -std::numeric_limits<float>::infinity();
  OpCase("FusedAttention", 1, kOurs)
      .input<float>({1, 2, 1}, {1, 1})
      .input<float>({1, 2, 1}, {1, 0})
      .input<float>({1, 2, 1}, {1, 3})
      .input<float>({2, 2}, {0, never, 0, 0})
      .run()
      .expect<float>(0, {1, 2, 1}, {1, kMore + 3 * kLess});
}

TEST(ObserveDifference, SumsAndPlaces) {
  OpCase("ObserveDifference", 1, kOurs)
      .input<float>({2, 2}, {1, 2, 3, 0})
      .input<float>({2, 2}, {1, 4, 0, 2})
      .run()
      // count, squares of both, of the difference, products, the largest, not finite, rows, same place
      .expect<double>(0, {9}, {4, 14, 21, 17, 9, 3, 0, 2, 1});
}

TEST(ObserveDifference, OtherShapesAndInfinities) {
  OpCase("ObserveDifference", 1, kOurs)
      .input<float>({2}, {1, 2})
      .input<float>({1, 2}, {1, 2})
      .run()
      .expect<double>(0, {9}, {-1, 0, 0, 0, 0, 0, 0, 0, 0});
  const float infinity = std::numeric_limits<float>::infinity();
  OpCase("ObserveDifference", 1, kOurs)
      .input<float>({3}, {infinity, infinity, 2})
      .input<float>({3}, {infinity, 1, 2})
      .run()
      .expect<double>(0, {9}, {3, 4, 4, 0, 4, 0, 1, 1, 1});
}

}  // namespace
}  // namespace plimsoll
