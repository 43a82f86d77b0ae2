// Expand, Concat, Split, Slice, Transpose, Gather, Pad, NonZero.
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

TEST(Expand, RepeatsAlongOnes) {
  OpCase("Expand", 13)
      .input<float>({2, 1}, {1, 2})
      .input<int64_t>({3}, {2, 1, 3})
      .run()
      .expect<float>(0, {2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  OpCase("Expand", 13).input<float>({1}, {1}).input<int64_t>({1}, {0}).run().expect<float>(0, {0}, {});
  OpCase("Expand", 13).input<float>({}, {4}).input<int64_t>({1}, {2}).run().expect<float>(0, {2}, {4, 4});
  EXPECT_THROW(OpCase("Expand", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {3}).run(), Error);
  EXPECT_THROW(OpCase("Expand", 13).input<float>({1}, {1}).input<int64_t>({2}, {kHuge, kHuge}).run(), Error);
}

TEST(Expand, IsSymbolicAndAViewWhenNothingChanges) {
  SymbolicCase grown("Expand", 13);
  EXPECT_EQ(grown.input(kFloat, Dims{1, 1, "seq"}).list(Dims{"batch", 1, "seq"}).infer().dims(),
            "[batch, 1, seq]");
  EXPECT_EQ(grown.aliases(), "");
  SymbolicCase same("Expand", 13);
  same.input(kFloat, Dims{"batch", 4}).list(Dims{1, "batch", 4}).infer();
  EXPECT_EQ(same.aliases(), "view 0->0 @0");
}

TEST(Concat, JoinsAlongTheAxis) {
  OpCase("Concat", 13)
      .input<float>({2, 1}, {1, 2})
      .input<float>({2, 2}, {3, 4, 5, 6})
      .attr("axis", int64_t{-1})
      .run()
      .expect<float>(0, {2, 3}, {1, 3, 4, 2, 5, 6});
  OpCase("Concat", 13)
      .input<float>({0, 2}, {})
      .input<float>({1, 2}, {3, 4})
      .attr("axis", int64_t{0})
      .run()
      .expect<float>(0, {1, 2}, {3, 4});
  EXPECT_THROW(
      OpCase("Concat", 13).input<float>({1}, {1}).input<int64_t>({1}, {1}).attr("axis", int64_t{0}).run(),
      Error);
  EXPECT_THROW(OpCase("Concat", 13)
                   .input<float>({1, 1}, {1})
                   .input<float>({1, 2}, {1, 2})
                   .attr("axis", int64_t{0})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Concat", 13).input<float>({1}, {1}).attr("axis", int64_t{1}).run(), Error);
}

TEST(Concat, KnowsValuesAndPieces) {
  SymbolicCase values("Concat", 13);
  EXPECT_EQ(values.list(Dims{"batch"}).list(Dims{12, "seq"}).attr("axis", int64_t{0}).infer().values(),
            "[batch, 12, seq]");
  SymbolicCase channels("Concat", 13);
  channels.input(kFloat, Dims{1, 2, "h"}).input(kFloat, Dims{1, 3, "h"}).attr("axis", int64_t{1}).infer();
  EXPECT_EQ(channels.dims(), "[1, 5, h]");
  EXPECT_EQ(channels.aliases(), "piece 0->0 @0, piece 1->0 @8*h");
  SymbolicCase batched("Concat", 13);
  batched.input(kFloat, Dims{"b", 2}).input(kFloat, Dims{"b", 3}).attr("axis", int64_t{1}).infer();
  EXPECT_EQ(batched.aliases(), "");
}

TEST(Split, TakesSizesFromAttributeInputOrCount) {
  OpCase("Split", 11)
      .input<float>({2, 3}, counting(6))
      .attr("axis", int64_t{1})
      .attr("split", std::vector<int64_t>{1, 2})
      .outputs(2)
      .run()
      .expect<float>(0, {2, 1}, {0, 3})
      .expect<float>(1, {2, 2}, {1, 2, 4, 5});
  OpCase("Split", 13)
      .input<float>({3}, counting(3))
      .input<int64_t>({2}, {0, 3})
      .outputs(2)
      .run()
      .expect<float>(0, {0}, {})
      .expect<float>(1, {3}, {0, 1, 2});
  OpCase("Split", 18)
      .input<float>({7}, counting(7))
      .attr("num_outputs", int64_t{3})
      .outputs(3)
      .run()
      .expect<float>(0, {3}, {0, 1, 2})
      .expect<float>(2, {1}, {6});
  EXPECT_THROW(OpCase("Split", 13).input<float>({7}, counting(7)).outputs(3).run(), Error);
  EXPECT_THROW(
      OpCase("Split", 13).input<float>({7}, counting(7)).input<int64_t>({2}, {3, 3}).outputs(2).run(), Error);
  EXPECT_THROW(
      OpCase("Split", 13).input<float>({7}, counting(7)).input<int64_t>({2}, {-1, 8}).outputs(2).run(),
      Error);
  EXPECT_THROW(OpCase("Split", 13)
                   .input<float>({7}, counting(7))
                   .input<int64_t>({2}, {INT64_MAX, INT64_MAX})
                   .outputs(2)
                   .run(),
               Error);
}

TEST(Split, IsSymbolic) {
  SymbolicCase c("Split", 13);
  c.input(kFloat, Dims{1, 8, "h"}).attr("axis", int64_t{1}).outputs(2).infer();
  EXPECT_EQ(c.dims(1), "[1, 4, h]");
  EXPECT_EQ(c.aliases(), "view 0->0 @0, view 0->1 @16*h");
  SymbolicCase halves("Split", 18);
  halves.input(kFloat, Dims{"n"}).attr("num_outputs", int64_t{2}).outputs(2).infer();
  EXPECT_EQ(halves.facts(0).type.dims[0] + halves.facts(1).type.dims[0], halves.symbol("n"));
}

TEST(Slice, ClampsAsTheSpecificationSays) {
  auto slice = [](int64_t start, int64_t end, int64_t step, const std::vector<float>& expected) {
    OpCase("Slice", 13)
        .input<float>({5}, counting(5))
        .input<int64_t>({1}, {start})
        .input<int64_t>({1}, {end})
        .input<int64_t>({1}, {0})
        .input<int64_t>({1}, {step})
        .run()
        .expect<float>(0, {static_cast<int64_t>(expected.size())}, expected);
  };
  slice(1, 3, 1, {1, 2});
  slice(-3, INT64_MAX, 1, {2, 3, 4});
  slice(-100, 2, 1, {0, 1});
  slice(7, 9, 1, {});
  slice(3, 1, 1, {});
  slice(0, 5, 3, {0, 3});
  slice(0, 5, INT64_MAX, {0});
  slice(4, 0, -1, {4, 3, 2, 1});
  slice(100, -100, -2, {4, 2, 0});
  slice(INT64_MAX, INT64_MIN, INT64_MIN, {4});
  slice(INT64_MIN, INT64_MIN, -1, {0});  // starts are held to [0, 4], ends to [-1, 4]
  slice(-1, -3, -1, {4, 3});
  EXPECT_THROW(slice(0, 5, 0, {}), Error);
}

TEST(Slice, CutsSeveralAxes) {
  OpCase("Slice", 1)
      .input<float>({2, 3, 2}, counting(12))
      .attr("starts", std::vector<int64_t>{1, 0})
      .attr("ends", std::vector<int64_t>{2, 1})
      .attr("axes", std::vector<int64_t>{1, 2})
      .run()
      .expect<float>(0, {2, 1, 1}, {2, 8});
  OpCase("Slice", 13)
      .input<float>({2, 3}, counting(6))
      .input<int32_t>({2}, {-1, -1})
      .input<int32_t>({2}, {-100, -100})
      .absent()
      .input<int32_t>({2}, {-1, -1})
      .run()
      .expect<float>(0, {2, 3}, {5, 4, 3, 2, 1, 0});
  OpCase("Slice", 13)
      .input<float>({0, 3}, {})
      .input<int64_t>({1}, {0})
      .input<int64_t>({1}, {9})
      .run()
      .expect<float>(0, {0, 3}, {});
  EXPECT_THROW(OpCase("Slice", 13)
                   .input<float>({5}, counting(5))
                   .input<int64_t>({2}, {0, 0})
                   .input<int64_t>({2}, {1, 1})
                   .input<int64_t>({2}, {0, 0})
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Slice", 13)
                   .input<float>({5}, counting(5))
                   .input<int64_t>({2}, {0, 0})
                   .input<int64_t>({2}, {1, 1})
                   .run(),
               Error);
}

TEST(Slice, IsSymbolic) {
  auto slice = [](const Dims& dims, TestDim start, TestDim end, int64_t axis, int64_t step) {
    return SymbolicCase("Slice", 13)
        .input(kFloat, dims)
        .list(Dims{start})
        .list(Dims{end})
        .list(Dims{axis})
        .list(Dims{step})
        .infer()
        .dims();
  };
  EXPECT_EQ(slice({"b", "s"}, 0, "s", 1, 1), "[b, s]");
  EXPECT_EQ(slice({"b", "s"}, 1, INT64_MAX, 1, 1), "[b, s - 1]");
  EXPECT_EQ(slice({"b", "s"}, 0, -1, 1, 1), "[b, s - 1]");
  EXPECT_EQ(slice({"b", 512}, 0, "s", 1, 1), "[b, s - max(s, 512) + 512]");
  EXPECT_EQ(slice({"b", "s"}, -1, INT64_MIN, 1, -1), "[b, s]");
  EXPECT_EQ(slice({"b", "s"}, 0, 1, 1, 1), "[b, 1]");
  // Backwards beyond the front, of an axis that may be shorter than that.
  EXPECT_EQ(slice({"b", "s"}, 0, -7, 1, -1), "[b, max(0, -max(-1, s - 7))]");
  EXPECT_EQ(
      SymbolicCase("Slice", 13).list(Dims{"n", 3, "h", "w"}).list(Dims{2}).list(Dims{4}).infer().values(),
      "[h, w]");
}

TEST(Slice, WithUnknownEndsKeepsTheOtherAxes) {
  SymbolicCase c("Slice", 13);
  c.input(kFloat, Dims{"b", 7}).list(Dims{0}).input(ElementType::kInt64, Dims{1}).list(Dims{1}).infer();
  EXPECT_EQ(c.facts().type.dims[0], c.symbol("b"));
  EXPECT_TRUE(c.facts().type.dims[1].depends_on_data());
}

TEST(Slice, IsAViewIfThePieceIsContiguous) {
  auto aliases = [](const Dims& dims, const Dims& starts, const Dims& ends) {
    return SymbolicCase("Slice", 13).input(kFloat, dims).list(starts).list(ends).infer().aliases();
  };
  EXPECT_EQ(aliases({4, "w"}, {1}, {3}), "view 0->0 @4*w");
  EXPECT_EQ(aliases({4, 5}, {0, 1}, {4, 2}), "");
  EXPECT_EQ(aliases({4, 5}, {2, 1}, {3, 3}), "view 0->0 @44");
  EXPECT_EQ(aliases({1, 5}, {0, 1}, {9, 3}), "view 0->0 @4");
  EXPECT_EQ(aliases({"b", 5}, {0, 1}, {INT64_MAX, 3}), "");
  EXPECT_EQ(aliases({"b", 5}, {0, 0}, {INT64_MAX, 5}), "view 0->0 @0");
}

// Against an obvious loop, over shapes that reach every inner loop of the copy kernel.
TEST(Transpose, AgreesWithTheObviousLoop) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> cases = {
      {{2, 3, 17, 19}, {0, 2, 3, 1}}, {{2, 17, 19, 3}, {0, 3, 1, 2}},     {{1, 33, 40, 21}, {0, 2, 3, 1}},
      {{2, 5, 4, 64}, {0, 2, 1, 3}},  {{3, 37, 18}, {0, 2, 1}},           {{4, 3, 2}, {2, 1, 0}},
      {{7, 1, 5, 1}, {3, 2, 1, 0}},   {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}}, {{300, 200}, {1, 0}},
      {{2, 260, 150}, {2, 0, 1}}};
  for (const auto& [dims, perm] : cases) {
    const size_t rank = dims.size();
    std::vector<int64_t> out_dims(rank), strides(rank, 1);
    for (size_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
    for (size_t i = 0; i < rank; ++i) out_dims[i] = dims[static_cast<size_t>(perm[i])];
    const int64_t count = strides[0] * dims[0];
    std::vector<float> expected;
    std::vector<int64_t> index(rank);
    for (int64_t k = 0; k < count; ++k) {
      int64_t at = 0;
      for (size_t i = 0; i < rank; ++i) at += index[i] * strides[static_cast<size_t>(perm[i])];
      expected.push_back(static_cast<float>(at));
      for (size_t i = rank; i-- > 0;) {
        if (++index[i] < out_dims[i]) break;
        index[i] = 0;
      }
    }
    for (int threads : {1, 2})
      OpCase("Transpose", 13)
          .input<float>(dims, counting(count))
          .attr("perm", perm)
          .threads(threads)
          .run()
          .expect<float>(0, out_dims, expected);
    OpCase("Transpose", 13)
        .input<uint8_t>(dims, std::vector<uint8_t>(static_cast<size_t>(count), 7))
        .attr("perm", perm)
        .run()
        .expect<uint8_t>(0, out_dims, std::vector<uint8_t>(static_cast<size_t>(count), 7));
  }
}

TEST(Transpose, HandlesOddCases) {
  OpCase("Transpose", 13)
      .input<float>({2, 3}, counting(6))
      .run()
      .expect<float>(0, {3, 2}, {0, 3, 1, 4, 2, 5});
  OpCase("Transpose", 13).input<float>({0, 3}, {}).run().expect<float>(0, {3, 0}, {});
  OpCase("Transpose", 13).input<float>({}, {1}).run().expect<float>(0, {}, {1});
  OpCase("Transpose", 13)
      .input<StringRef>({1, 2}, {{"a", 1}, {"b", 1}})
      .run()
      .expect<StringRef>(0, {2, 1}, {{"a", 1}, {"b", 1}});
  for (const std::vector<int64_t>& perm : {std::vector<int64_t>{0}, {0, 0}, {0, 2}, {-1, 0}})
    EXPECT_THROW(OpCase("Transpose", 13).input<float>({2, 3}, counting(6)).attr("perm", perm).run(), Error);
}

TEST(Transpose, IsAViewIfOnlyOnesMove) {
  SymbolicCase c("Transpose", 13);
  EXPECT_EQ(c.input(kFloat, Dims{"b", 1, "s"}).attr("perm", std::vector<int64_t>{1, 0, 2}).infer().dims(),
            "[1, b, s]");
  EXPECT_EQ(c.aliases(), "view 0->0 @0");
  SymbolicCase moved("Transpose", 13);
  moved.input(kFloat, Dims{"b", 1, "s"}).attr("perm", std::vector<int64_t>{2, 1, 0}).infer();
  EXPECT_EQ(moved.aliases(), "");
}

TEST(Gather, PicksRows) {
  OpCase("Gather", 13)
      .input<float>({3, 2}, counting(6))
      .input<int64_t>({2, 1}, {2, -3})
      .run()
      .expect<float>(0, {2, 1, 2}, {4, 5, 0, 1});
  OpCase("Gather", 13)
      .input<float>({2, 3}, counting(6))
      .input<int32_t>({}, {1})
      .attr("axis", int64_t{-1})
      .run()
      .expect<float>(0, {2}, {1, 4});
  OpCase("Gather", 13)
      .input<float>({3, 2}, counting(6))
      .input<int64_t>({0}, {})
      .run()
      .expect<float>(0, {0, 2}, {});
}

TEST(Gather, NamesTheWrongIndex) {
  try {
    OpCase("Gather", 13).input<float>({3, 1}, counting(3)).input<int64_t>({1}, {3}).run();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "node 'node' (Gather): index 3 is outside [-3, 3)");
  }
  EXPECT_THROW(OpCase("Gather", 13).input<float>({0, 2}, {}).input<int64_t>({1}, {0}).run(), Error);
  EXPECT_THROW(OpCase("Gather", 13).input<float>({}, {1}).input<int64_t>({1}, {0}).run(), Error);
}

TEST(Gather, KnowsValues) {
  EXPECT_EQ(SymbolicCase("Gather", 13).list(Dims{"batch", "seq"}).scalar(1).infer().values(), "[seq]");
  EXPECT_EQ(SymbolicCase("Gather", 13)
                .input(kFloat, Dims{30522, 768})
                .input(ElementType::kInt64, Dims{"b", "s"})
                .infer()
                .dims(),
            "[b, s, 768]");
}

TEST(Pad, FillsEveryMode) {
  auto pad = [](const char* mode, const std::vector<int64_t>& pads, const std::vector<float>& expected) {
    OpCase("Pad", 19)
        .input<float>({3}, {1, 2, 3})
        .input<int64_t>({static_cast<int64_t>(pads.size())}, pads)
        .attr("mode", mode)
        .run()
        .expect<float>(0, {static_cast<int64_t>(expected.size())}, expected);
  };
  pad("constant", {1, 2}, {0, 1, 2, 3, 0, 0});
  pad("constant", {-1, 1}, {2, 3, 0});
  pad("constant", {-5, 4}, {0, 0});
  pad("reflect", {2, 2}, {3, 2, 1, 2, 3, 2, 1});
  pad("reflect", {5, 0}, {2, 1, 2, 3, 2, 1, 2, 3});
  pad("edge", {2, 1}, {1, 1, 1, 2, 3, 3});
  pad("wrap", {4, 1}, {3, 1, 2, 3, 1, 2, 3, 1});
  pad("edge", {-1, 1}, {2, 3, 3});
  EXPECT_THROW(pad("edge", {-3, 4}, {}), Error);
  EXPECT_THROW(pad("constant", {INT64_MIN, INT64_MAX}, {}), Error);
  EXPECT_THROW(pad("constant", {int64_t{1} << 47, int64_t{1} << 60}, {}), Error);
  EXPECT_THROW(pad("constant", {1}, {}), Error);
  EXPECT_THROW(pad("odd", {1, 1}, {}), Error);
}

// Where the last axes are not padded, what they hold moves together.
TEST(Pad, MirrorsWholeBlocks) {
  OpCase("Pad", 19)
      .input<float>({1, 3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({6}, {0, 2, 0, 0, 1, 0})
      .attr("mode", "reflect")
      .run()
      .expect<float>(0, {1, 6, 2}, {5, 6, 3, 4, 1, 2, 3, 4, 5, 6, 3, 4});
  OpCase("Pad", 19)
      .input<float>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
      .input<int64_t>({6}, {1, -1, 0, 0, 1, 0})
      .attr("mode", "wrap")
      .run()
      .expect<float>(0, {3, 3, 2}, {9, 10, 11, 12, 9, 10, 3, 4, 5, 6, 3, 4, 9, 10, 11, 12, 9, 10});
  OpCase("Pad", 19)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({4}, {0, 0, 0, 0})
      .attr("mode", "edge")
      .run()
      .expect<float>(0, {2, 2}, {1, 2, 3, 4});
}

TEST(Pad, PadsInTwoDimensions) {
  OpCase("Pad", 2)
      .input<float>({1, 2}, {1, 2})
      .attr("pads", std::vector<int64_t>{1, 0, 0, 1})
      .attr("value", 9.0f)
      .run()
      .expect<float>(0, {2, 3}, {9, 9, 9, 1, 2, 9});
  OpCase("Pad", 18)
      .input<int32_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2}, {1, 0})
      .input<int32_t>({}, {7})
      .input<int64_t>({1}, {-1})
      .run()
      .expect<int32_t>(0, {2, 3}, {7, 1, 2, 7, 3, 4});
  OpCase("Pad", 13)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({4}, {1, 1, 0, 0})
      .attr("mode", "reflect")
      .run()
      .expect<float>(0, {3, 3}, {4, 3, 4, 2, 1, 2, 4, 3, 4});
  OpCase("Pad", 13).input<float>({0}, {}).input<int64_t>({2}, {1, 1}).run().expect<float>(0, {2}, {0, 0});
  EXPECT_EQ(SymbolicCase("Pad", 13).input(kFloat, Dims{1, "h"}).list(Dims{0, 1, 0, 2}).infer().dims(),
            "[1, h + 3]");
}

TEST(NonZero, CountsWhenTheDataIsKnown) {
  OpCase("NonZero", 13)
      .input<float>({2, 2}, {1, 0, 3, -1})
      .run()
      .expect<int64_t>(0, {2, 3}, {0, 1, 1, 0, 0, 1});
  OpCase("NonZero", 13).input<bool>({3}, {false, true, true}).run().expect<int64_t>(0, {1, 2}, {1, 2});
  OpCase("NonZero", 13).input<float>({}, {5}).run().expect<int64_t>(0, {0, 1}, {});
  OpCase("NonZero", 13).input<float>({0, 2}, {}).run().expect<int64_t>(0, {2, 0}, {});
  SymbolicCase c("NonZero", 13);
  c.input(kFloat, Dims{"n", 2}).infer();
  EXPECT_TRUE(c.facts().type.dims[1].depends_on_data());
}

}  // namespace
}  // namespace plimsoll
