// Tile, DepthToSpace, SpaceToDepth, gathers and scatters, Trilu, EyeLike, OneHot, CumSum, TopK, ArgMax,
// ArgMin.
#include <algorithm>
#include <numeric>
#include <random>

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

// Lines of one index, as rows that are summed up have them, and lines of many.
TEST(ScatterElements, RandomAgainstTheDefinition) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const std::vector<int64_t> dims = {pick(1, 4), pick(1, 5), pick(1, 40)};
    const int64_t axis = pick(0, 2);
    std::vector<int64_t> taken;
    for (int64_t d = 0; d < 3; ++d) taken.push_back(pick(1, d == axis ? 6 : dims[static_cast<size_t>(d)]));
    const int64_t count = taken[0] * taken[1] * taken[2], size = dims[static_cast<size_t>(axis)];
    const bool same = pick(0, 1) == 0;
    std::vector<float> data = counting(dims[0] * dims[1] * dims[2]);
    std::vector<float> updates(static_cast<size_t>(count));
    std::vector<int64_t> indices(static_cast<size_t>(count));
    int64_t index = 0;
    for (int64_t n = 0; n < count; ++n) {
      if (!same || n % taken[2] == 0) index = pick(-size, size - 1);
      indices[static_cast<size_t>(n)] = index,
      updates[static_cast<size_t>(n)] = static_cast<float>(pick(-9, 9));
    }
    std::vector<float> expected = data;
    for (int64_t n = 0; n < count; ++n) {
      int64_t at[3] = {n / taken[2] / taken[1], n / taken[2] % taken[1], n % taken[2]};
      at[axis] = (indices[static_cast<size_t>(n)] + size) % size;
      float& target = expected[static_cast<size_t>((at[0] * dims[1] + at[1]) * dims[2] + at[2])];
      const float update = updates[static_cast<size_t>(n)];
      target = i % 3 == 0 ? target + update : i % 3 == 1 ? std::max(target, update) : update;
    }
    OpCase c("ScatterElements", 18);
    c.input<float>(dims, data);
    if (i % 2 == 0) {
      c.input<int64_t>(taken, indices);
    } else {
      c.input<int32_t>(taken, std::vector<int32_t>(indices.begin(), indices.end()));
    }
    c.input<float>(taken, updates).attr("axis", axis);
    c.attr("reduction", i % 3 == 0   ? "add"
                        : i % 3 == 1 ? "max"
                                     : "none")
        .run()
        .expect<float>(0, dims, expected);
    if (HasFailure()) return;
  }
}

// Random lines against the definition: of one index, of many, along the last axis and before it.
TEST(GatherElements, RandomAgainstTheDefinition) {
  std::mt19937 random(4);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const std::vector<int64_t> dims = {pick(1, 4), pick(1, 5), i % 4 == 0 ? 1 : pick(1, 40)};
    const int64_t axis = pick(0, 2), size = dims[static_cast<size_t>(axis)];
    std::vector<int64_t> taken;
    for (int64_t d = 0; d < 3; ++d) taken.push_back(pick(1, d == axis ? 6 : dims[static_cast<size_t>(d)]));
    const int64_t count = taken[0] * taken[1] * taken[2];
    const bool same = pick(0, 1) == 0;
    const std::vector<float> data = counting(dims[0] * dims[1] * dims[2]);
    std::vector<int64_t> indices;
    std::vector<float> expected;
    for (int64_t n = 0; n < count; ++n) {
      indices.push_back(same && n % taken[2] > 0 ? indices.back() : pick(-size, size - 1));
      int64_t at[3] = {n / taken[2] / taken[1], n / taken[2] % taken[1], n % taken[2]};
      at[axis] = (indices.back() + size) % size;
      expected.push_back(data[static_cast<size_t>((at[0] * dims[1] + at[1]) * dims[2] + at[2])]);
    }
    OpCase c("GatherElements", 13);
    c.input<float>(dims, data);
    if (i % 2 == 0) {
      c.input<int64_t>(taken, indices);
    } else {
      c.input<int32_t>(taken, std::vector<int32_t>(indices.begin(), indices.end()));
    }
    c.attr("axis", axis).run().expect<float>(0, taken, expected);
    if (HasFailure()) return;
  }
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

// Where NaN is what is left, it is taken.
TEST(TopK, OfNothingButNaN) {
  std::vector<float> in(100, NAN);
  in[70] = 1;
  for (const int64_t largest : {0, 1}) {
    OpCase("TopK", 11)
        .input<float>({100}, in)
        .input<int64_t>({1}, {2})
        .attr("largest", largest)
        .outputs(2)
        .run()
        .expect<int64_t>(1, {2}, largest == 1 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{70, 0});
  }
}

// A few of many, in rising order too, in which every element is the best so far; many are equal.
TEST(TopK, RandomAgainstAStableSort) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 40; ++i) {
    const int64_t size = pick(1, 1500), k = pick(1, pick(0, 2) == 0 ? size : 1 + size / 9);
    const bool largest = pick(0, 1) == 0;
    std::vector<float> in(static_cast<size_t>(size));
    for (float& v : in) v = static_cast<float>(pick(-40, 40)) / (i % 2 == 0 ? 1.0f : 3.0f);
    if (i % 4 == 0) std::sort(in.begin(), in.end());
    std::vector<int64_t> order(in.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const float x = in[static_cast<size_t>(a)], y = in[static_cast<size_t>(b)];
      return largest ? x > y : x < y;
    });
    order.resize(static_cast<size_t>(k));
    std::vector<float> best;
    for (int64_t at : order) best.push_back(in[static_cast<size_t>(at)]);
    OpCase("TopK", 11)
        .input<float>({size}, in)
        .input<int64_t>({1}, {k})
        .attr("largest", int64_t{largest})
        .outputs(2)
        .run()
        .expect<float>(0, {k}, best)
        .expect<int64_t>(1, {k}, order);
    if (HasFailure()) return;
  }
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
