// Tile, DepthToSpace, SpaceToDepth, gathers and scatters, Trilu, EyeLike, OneHot, CumSum, TopK, ArgMax,
// ArgMin.
#include <numeric>

#include "ops/op_case.h"
#include "ops/symbolic_case.h"

namespace plimsoll {
namespace {

using Dims = std::vector<TestDim>;
constexpr ElementType kFloat = ElementType::kFloat;
constexpr int64_t kHuge = int64_t{1} << 40;

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Tile, Repeats) {
  OpCase("Tile", 13)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2}, {2, 2})
      .run()
      .expect<float>(0, {4, 4}, {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4});
  OpCase("Tile", 1)
      .input<float>({1, 2}, {1, 2})
      .input<int64_t>({1}, {2})
      .input<int64_t>({1}, {1})
      .run()
      .expect<float>(0, {1, 4}, {1, 2, 1, 2});
  OpCase("Tile", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {0}).run().expect<float>(0, {0}, {});
  EXPECT_THROW(OpCase("Tile", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {-1}).run(), Error);
  EXPECT_THROW(OpCase("Tile", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {INT64_MAX}).run(), Error);
  EXPECT_THROW(OpCase("Tile", 13).input<float>({2}, {1, 2}).input<int64_t>({2}, {1, 1}).run(), Error);
  EXPECT_EQ(SymbolicCase("Tile", 13).input(kFloat, Dims{1, "s"}).list(Dims{"b", 2}).infer().dims(),
            "[b, 2*s]");
}

TEST(DepthToSpace, KnowsBothOrders) {
  OpCase("DepthToSpace", 13)
      .input<float>({1, 8, 1, 1}, counting(8))
      .attr("blocksize", int64_t{2})
      .run()
      .expect<float>(0, {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
  OpCase("DepthToSpace", 13)
      .input<float>({1, 8, 1, 1}, counting(8))
      .attr("blocksize", int64_t{2})
      .attr("mode", "CRD")
      .run()
      .expect<float>(0, {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THROW(
      OpCase("DepthToSpace", 13).input<float>({1, 3, 1, 1}, counting(3)).attr("blocksize", int64_t{2}).run(),
      Error);
  EXPECT_THROW(
      OpCase("DepthToSpace", 13).input<float>({1, 3, 1, 1}, counting(3)).attr("blocksize", int64_t{0}).run(),
      Error);
}

TEST(SpaceToDepth, UndoesDepthToSpace) {
  OpCase deep("SpaceToDepth", 13);
  deep.input<float>({2, 3, 4, 6}, counting(144)).attr("blocksize", int64_t{2}).run();
  const float* data = deep.result().as<float>();
  OpCase("DepthToSpace", 13)
      .input<float>({2, 12, 2, 3}, std::vector<float>(data, data + 144))
      .attr("blocksize", int64_t{2})
      .run()
      .expect<float>(0, {2, 3, 4, 6}, counting(144));
  EXPECT_EQ(SymbolicCase("SpaceToDepth", 13)
                .input(kFloat, Dims{"n", 3, 4, 4})
                .attr("blocksize", int64_t{2})
                .infer()
                .dims(),
            "[n, 12, 2, 2]");
}

TEST(GatherElements, PicksElements) {
  OpCase("GatherElements", 13)
      .input<float>({3, 3}, counting(9))
      .input<int64_t>({2, 3}, {1, 2, 0, 2, 0, -3})
      .run()
      .expect<float>(0, {2, 3}, {3, 7, 2, 6, 1, 2});
  OpCase("GatherElements", 13)
      .input<float>({2, 2}, counting(4))
      .input<int32_t>({2, 1}, {1, 0})
      .attr("axis", int64_t{-1})
      .run()
      .expect<float>(0, {2, 1}, {1, 2});
  EXPECT_THROW(OpCase("GatherElements", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {2}).run(), Error);
  EXPECT_THROW(OpCase("GatherElements", 13).input<float>({2, 1}, {1, 2}).input<int64_t>({1, 2}, {0, 0}).run(),
               Error);
  EXPECT_THROW(OpCase("GatherElements", 13).input<float>({2, 1}, {1, 2}).input<int64_t>({1}, {0}).run(),
               Error);
}

TEST(GatherND, PicksPieces) {
  OpCase("GatherND", 13)
      .input<int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .input<int64_t>({2, 1, 2}, {0, 1, 1, 0})
      .run()
      .expect<int32_t>(0, {2, 1, 2}, {2, 3, 4, 5});
  OpCase("GatherND", 13)
      .input<int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .input<int64_t>({2, 1}, {1, 0})
      .attr("batch_dims", int64_t{1})
      .run()
      .expect<int32_t>(0, {2, 2}, {2, 3, 4, 5});
  EXPECT_THROW(OpCase("GatherND", 13).input<int32_t>({2}, {0, 1}).input<int64_t>({1, 1}, {2}).run(), Error);
  EXPECT_THROW(OpCase("GatherND", 13).input<int32_t>({2}, {0, 1}).input<int64_t>({1, 2}, {0, 0}).run(),
               Error);
  OpCase("GatherND", 13)
      .input<int32_t>({2}, {0, 1})
      .input<int64_t>({0, 1}, {})
      .run()
      .expect<int32_t>(0, {0}, {});
}

TEST(ScatterND, WritesAndReduces) {
  auto scatter = [](const char* reduction, const std::vector<float>& expected) {
    OpCase("ScatterND", 18)
        .input<float>({4}, {1, 2, 3, 4})
        .input<int64_t>({3, 1}, {1, -1, 1})
        .input<float>({3}, {9, 10, 11})
        .attr("reduction", reduction)
        .run()
        .expect<float>(0, {4}, expected);
  };
  scatter("none", {1, 11, 3, 10});
  scatter("add", {1, 22, 3, 14});
  scatter("mul", {1, 198, 3, 40});
  scatter("max", {1, 11, 3, 10});
  scatter("min", {1, 2, 3, 4});
  EXPECT_THROW(scatter("odd", {}), Error);
  EXPECT_THROW(OpCase("ScatterND", 13)
                   .input<float>({2}, {1, 2})
                   .input<int64_t>({1, 1}, {2})
                   .input<float>({1}, {9})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("ScatterND", 13)
                   .input<float>({2}, {1, 2})
                   .input<int64_t>({1, 1}, {0})
                   .input<float>({2}, {9, 9})
                   .run(),
               Error);
}

TEST(Scatter, IsTheOldNameOfScatterElements) {
  OpCase("Scatter", 9)
      .input<float>({1, 4}, {1, 2, 3, 4})
      .input<int64_t>({1, 2}, {1, 3})
      .input<float>({1, 2}, {8, 9})
      .attr("axis", int64_t{1})
      .run()
      .expect<float>(0, {1, 4}, {1, 8, 3, 9});
}

TEST(ScatterElements, WritesAlongTheAxis) {
  OpCase("ScatterElements", 13)
      .input<float>({1, 5}, {1, 2, 3, 4, 5})
      .input<int64_t>({1, 2}, {1, -2})
      .input<float>({1, 2}, {1.5f, 2.5f})
      .attr("axis", int64_t{1})
      .run()
      .expect<float>(0, {1, 5}, {1, 1.5f, 3, 2.5f, 5});
  OpCase("ScatterElements", 18)
      .input<Float16>({2}, {Float16(1), Float16(2)})
      .input<int64_t>({2}, {0, 0})
      .input<Float16>({2}, {Float16(3), Float16(4)})
      .attr("reduction", "add")
      .run()
      .expect<Float16>(0, {2}, {Float16(8), Float16(2)});
  EXPECT_THROW(OpCase("ScatterElements", 13)
                   .input<float>({2}, {1, 2})
                   .input<int64_t>({1}, {-3})
                   .input<float>({1}, {0})
                   .run(),
               Error);
}

TEST(Trilu, KeepsATriangle) {
  const std::vector<float> ones(9, 1);
  OpCase("Trilu", 14).input<float>({3, 3}, ones).run().expect<float>(0, {3, 3}, {1, 1, 1, 0, 1, 1, 0, 0, 1});
  OpCase("Trilu", 14)
      .input<float>({3, 3}, ones)
      .input<int64_t>({}, {-1})
      .attr("upper", int64_t{0})
      .run()
      .expect<float>(0, {3, 3}, {0, 0, 0, 1, 0, 0, 1, 1, 0});
  OpCase("Trilu", 14)
      .input<float>({3, 3}, ones)
      .input<int64_t>({}, {INT64_MAX})
      .run()
      .expect<float>(0, {3, 3}, std::vector<float>(9));
  OpCase("Trilu", 14)
      .input<float>({3, 3}, ones)
      .input<int64_t>({}, {INT64_MIN})
      .run()
      .expect<float>(0, {3, 3}, ones);
  OpCase("Trilu", 14).input<float>({0, 3}, {}).run().expect<float>(0, {0, 3}, {});
}

TEST(EyeLike, PutsOnesOnADiagonal) {
  OpCase("EyeLike", 9)
      .input<int32_t>({2, 3}, std::vector<int32_t>(6))
      .attr("k", int64_t{1})
      .run()
      .expect<int32_t>(0, {2, 3}, {0, 1, 0, 0, 0, 1});
  OpCase("EyeLike", 9)
      .input<int32_t>({2, 2}, std::vector<int32_t>(4))
      .attr("dtype", int64_t{1})
      .attr("k", INT64_MIN)
      .run()
      .expect<float>(0, {2, 2}, {0, 0, 0, 0});
  EXPECT_THROW(OpCase("EyeLike", 9).input<int32_t>({1, 1}, {0}).attr("dtype", int64_t{99}).run(), Error);
}

TEST(OneHot, SetsOneOfDepth) {
  OpCase("OneHot", 11)
      .input<int64_t>({3}, {0, -1, 7})
      .input<float>({}, {3})
      .input<int32_t>({2}, {2, 5})
      .run()
      .expect<int32_t>(0, {3, 3}, {5, 2, 2, 2, 2, 5, 2, 2, 2});
  OpCase("OneHot", 11)
      .input<float>({2}, {0, 1})
      .input<int64_t>({1}, {2})
      .input<float>({2}, {0, 1})
      .attr("axis", int64_t{0})
      .run()
      .expect<float>(0, {2, 2}, {1, 0, 0, 1});
  EXPECT_THROW(
      OpCase("OneHot", 11).input<int64_t>({1}, {0}).input<int64_t>({}, {-1}).input<float>({2}, {0, 1}).run(),
      Error);
  EXPECT_THROW(OpCase("OneHot", 11)
                   .input<int64_t>({1}, {0})
                   .input<int64_t>({}, {INT64_MAX})
                   .input<float>({2}, {0, 1})
                   .run(),
               Error);
}

TEST(CumSum, SumsInEveryDirection) {
  auto sums = [](int64_t exclusive, int64_t reverse, const std::vector<float>& expected) {
    OpCase("CumSum", 14)
        .input<float>({3}, {1, 2, 3})
        .input<int32_t>({}, {-1})
        .attr("exclusive", exclusive)
        .attr("reverse", reverse)
        .run()
        .expect<float>(0, {3}, expected);
  };
  sums(0, 0, {1, 3, 6});
  sums(1, 0, {0, 1, 3});
  sums(0, 1, {6, 5, 3});
  sums(1, 1, {5, 3, 0});
  OpCase("CumSum", 14)
      .input<int64_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({}, {0})
      .run()
      .expect<int64_t>(0, {2, 2}, {1, 2, 4, 6});
  EXPECT_THROW(OpCase("CumSum", 14).input<float>({1}, {1}).input<int64_t>({}, {1}).run(), Error);
}

TEST(TopK, SortsAndKeepsTheOrderOfEquals) {
  OpCase("TopK", 11)
      .input<float>({2, 4}, {1, 3, 3, 2, 0, NAN, 5, 4})
      .input<int64_t>({1}, {2})
      .outputs(2)
      .run()
      .expect<int64_t>(1, {2, 2}, {1, 2, 1, 2});
  OpCase("TopK", 11)
      .input<int32_t>({3, 2}, {5, 1, 4, 2, 6, 0})
      .input<int64_t>({1}, {2})
      .attr("axis", int64_t{0})
      .attr("largest", int64_t{0})
      .outputs(2)
      .run()
      .expect<int32_t>(0, {2, 2}, {4, 0, 5, 1})
      .expect<int64_t>(1, {2, 2}, {1, 2, 0, 0});
  OpCase("TopK", 1)
      .input<float>({3}, {1, 3, 2})
      .attr("k", int64_t{1})
      .outputs(2)
      .run()
      .expect<float>(0, {1}, {3});
  EXPECT_THROW(OpCase("TopK", 11).input<float>({2}, {1, 2}).input<int64_t>({1}, {3}).outputs(2).run(), Error);
  EXPECT_THROW(OpCase("TopK", 11).input<float>({2}, {1, 2}).input<int64_t>({1}, {-1}).outputs(2).run(),
               Error);
  SymbolicCase c("TopK", 11);
  EXPECT_EQ(c.input(kFloat, Dims{"b", "n"}).list(Dims{"k"}).outputs(2).infer().dims(1), "[b, k]");
}

TEST(ArgMax, FindsFirstOrLast) {
  OpCase("ArgMax", 13)
      .input<float>({2, 2}, {2, 1, 3, 3})
      .attr("axis", int64_t{1})
      .run()
      .expect<int64_t>(0, {2, 1}, {0, 0});
  OpCase("ArgMax", 13)
      .input<float>({2, 2}, {2, 1, 3, 3})
      .attr("axis", int64_t{-1})
      .attr("keepdims", int64_t{0})
      .attr("select_last_index", int64_t{1})
      .run()
      .expect<int64_t>(0, {2}, {0, 1});
  OpCase("ArgMin", 13).input<int32_t>({2, 2}, {2, 1, 0, 3}).run().expect<int64_t>(0, {1, 2}, {1, 0});
  OpCase("ArgMax", 13).input<float>({0, 2}, {}).attr("axis", int64_t{1}).run().expect<int64_t>(0, {0, 1}, {});
  EXPECT_THROW(OpCase("ArgMax", 13).input<float>({0, 2}, {}).run(), Error);
  EXPECT_THROW(OpCase("ArgMax", 13).input<float>({}, {1}).attr("axis", kHuge).run(), Error);
}

}  // namespace
}  // namespace plimsoll
