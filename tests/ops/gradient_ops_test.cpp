// Operators of ours that only gradients make.
#include "ops/op_case.h"

namespace plimsoll {
namespace {

TEST(GatherGradient, AddsRowsByIndex) {
  OpCase("GatherGradient", 1, "ai.plimsoll")
      .input<float>({3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({3}, {2, 0, -1})
      .input<int64_t>({2}, {3, 2})
      .run()
      .expect<float>(0, {3, 2}, {3, 4, 0, 0, 6, 8});
}

TEST(GatherGradient, AddsAlongAnAxis) {
  OpCase("GatherGradient", 1, "ai.plimsoll")
      .input<double>({2, 2}, {1, 2, 3, 4})
      .input<int32_t>({2}, {1, 1})
      .input<int64_t>({2}, {2, 3})
      .attr("axis", int64_t{1})
      .run()
      .expect<double>(0, {2, 3}, {0, 3, 0, 0, 7, 0});
}

TEST(GatherGradient, RefusesIndicesOutside) {
  OpCase op("GatherGradient", 1, "ai.plimsoll");
  op.input<float>({1, 2}, {1, 2}).input<int64_t>({1}, {3}).input<int64_t>({2}, {3, 2});
  EXPECT_THROW(op.run(), Error);
}

TEST(GatherGradient, RefusesAGradientOfAnotherShape) {
  OpCase op("GatherGradient", 1, "ai.plimsoll");
  op.input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({1}, {0}).input<int64_t>({2}, {3, 2});
  EXPECT_THROW(op.run(), Error);
}

TEST(SliceGradient, PutsWhatWasCutOutIntoZeros) {
  OpCase("SliceGradient", 1, "ai.plimsoll")
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2}, {2, 5})
      .input<int64_t>({1}, {-1})
      .input<int64_t>({1}, {0})
      .input<int64_t>({1}, {1})
      .input<int64_t>({1}, {-2})
      .run()
      .expect<float>(0, {2, 5}, {0, 0, 2, 0, 1, 0, 0, 4, 0, 3});
}

TEST(SliceGradient, RefusesAGradientOfAnotherSize) {
  OpCase op("SliceGradient", 1, "ai.plimsoll");
  op.input<float>({3}, {1, 2, 3}).input<int64_t>({1}, {5}).input<int64_t>({1}, {0}).input<int64_t>({1}, {2});
  EXPECT_THROW(op.run(), Error);
}

}  // namespace
}  // namespace plimsoll
