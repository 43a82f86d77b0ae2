// Shape, Size, Constant, ConstantOfShape, Range, Reshape, Flatten, Squeeze, Unsqueeze.
#include "ops/op_case.h"
#include "ops/symbolic_case.h"

namespace plimsoll {
namespace {

using Dims = std::vector<TestDim>;
constexpr ElementType kFloat = ElementType::kFloat;
constexpr int64_t kHuge = int64_t{1} << 40;

template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Shape, GivesTheSymbolsOfItsInput) {
  EXPECT_EQ(SymbolicCase("Shape", 13).input(kFloat, Dims{"batch", "seq", 768}).infer().values(),
            "[batch, seq, 768]");
}

TEST(Shape, CutsFromStartToEnd) {
  OpCase("Shape", 15)
      .input<float>({2, 3, 1}, std::vector<float>(6))
      .attr("start", int64_t{-2})
      .run()
      .expect<int64_t>(0, {2}, {3, 1});
  OpCase("Shape", 15)
      .input<float>({2, 3, 1}, std::vector<float>(6))
      .attr("start", int64_t{2})
      .attr("end", int64_t{1})
      .run()
      .expect<int64_t>(0, {0}, {});
}

TEST(Shape, OfUnknownRankHasUnknownLength) {
  const auto c = SymbolicCase("Shape", 13).unranked(kFloat).infer().facts().type.dims.size();
  EXPECT_EQ(c, 1u);
}

TEST(Size, IsTheProduct) {
  EXPECT_EQ(SymbolicCase("Size", 13).input(kFloat, Dims{"b", 3, 4}).infer().values(), "[12*b]");
  OpCase("Size", 13).input<float>({0, 3}, {}).run().expect<int64_t>(0, {}, {0});
}

TEST(Constant, TakesEveryForm) {
  OpCase("Constant", 13).attr("value_int", int64_t{7}).run().expect<int64_t>(0, {}, {7});
  OpCase("Constant", 13).attr("value_ints", std::vector<int64_t>{7, 8}).run().expect<int64_t>(0, {2}, {7, 8});
  OpCase("Constant", 13).attr("value_float", 0.5f).run().expect<float>(0, {}, {0.5f});
  OpCase("Constant", 13).attr("value_string", "hi").run().expect<StringRef>(0, {}, {{"hi", 2}});
  EXPECT_THROW(OpCase("Constant", 13).run(), Error);
}

TEST(Constant, DensifiesASparseValue) {
  const std::vector<float> values = {5, 6};
  const std::vector<int64_t> count = {2}, linear = {1, 5}, pairs = {0, 1, 1, 2}, pair_dims = {2, 2},
                             dims = {2, 3};
  SparseData sparse;
  sparse.values = {kFloat, count, std::as_bytes(std::span(values))};
  sparse.dims = dims;
  Attribute a;
  a.name = "sparse_value", a.type = AttributeType::kSparseTensor, a.sparse = &sparse;
  sparse.indices = {ElementType::kInt64, count, std::as_bytes(std::span(linear))};
  OpCase("Constant", 13).attr(a).run().expect<float>(0, {2, 3}, {0, 5, 0, 0, 0, 6});
  sparse.indices = {ElementType::kInt64, pair_dims, std::as_bytes(std::span(pairs))};
  OpCase("Constant", 13).attr(a).run().expect<float>(0, {2, 3}, {0, 5, 0, 0, 0, 6});
  const std::vector<int64_t> outside = {1, 6};
  sparse.indices = {ElementType::kInt64, count, std::as_bytes(std::span(outside))};
  EXPECT_THROW(OpCase("Constant", 13).attr(a).run(), Error);
  const std::vector<int64_t> huge = {kHuge, kHuge};
  sparse.dims = huge;
  EXPECT_THROW(OpCase("Constant", 13).attr(a).run(), Error);
}

TEST(Constant, TellsItsDataToInference) {
  SymbolicCase c("Constant", 13);
  EXPECT_NE(c.attr("value_int", int64_t{7}).infer().facts().constant, nullptr);
}

TEST(ConstantOfShape, FillsWithZeroOrTheValue) {
  OpCase("ConstantOfShape", 9).input<int64_t>({2}, {2, 1}).run().expect<float>(0, {2, 1}, {0, 0});
  OpCase("ConstantOfShape", 9).input<int64_t>({0}, {}).run().expect<float>(0, {}, {0});
  const std::vector<int64_t> one = {1}, value = {9};
  TensorData tensor{ElementType::kInt64, one, std::as_bytes(std::span(value))};
  Attribute a;
  a.name = "value", a.type = AttributeType::kTensor, a.tensor = &tensor;
  OpCase("ConstantOfShape", 9).attr(a).input<int64_t>({1}, {3}).run().expect<int64_t>(0, {3}, {9, 9, 9});
}

TEST(ConstantOfShape, IsSymbolic) {
  EXPECT_EQ(SymbolicCase("ConstantOfShape", 9).list(Dims{"b", 4}).infer().dims(), "[b, 4]");
  EXPECT_EQ(
      SymbolicCase("ConstantOfShape", 9).input(ElementType::kInt64, Dims{2}).infer().facts().type.rank(), 2u);
  EXPECT_EQ(SymbolicCase("ConstantOfShape", 9).input(ElementType::kInt64, Dims{"r"}).infer().dims(),
            "unranked");
}

TEST(ConstantOfShape, RefusesHostileShapes) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{kHuge, kHuge}, {-1, 2}, {kHuge, kHuge, 0}})
    EXPECT_THROW(OpCase("ConstantOfShape", 9).input<int64_t>({static_cast<int64_t>(dims.size())}, dims).run(),
                 Error);
  EXPECT_THROW(OpCase("ConstantOfShape", 9).input<int64_t>({100}, std::vector<int64_t>(100, 1)).run(), Error);
}

TEST(Range, CountsSteps) {
  OpCase("Range", 11)
      .input<float>({}, {1})
      .input<float>({}, {5})
      .input<float>({}, {2})
      .run()
      .expect<float>(0, {2}, {1, 3});
  OpCase("Range", 11)
      .input<int32_t>({}, {10})
      .input<int32_t>({}, {6})
      .input<int32_t>({}, {-3})
      .run()
      .expect<int32_t>(0, {2}, {10, 7});
  OpCase("Range", 11)
      .input<int64_t>({}, {3})
      .input<int64_t>({}, {3})
      .input<int64_t>({}, {1})
      .run()
      .expect<int64_t>(0, {0}, {});
  OpCase("Range", 11)
      .input<int64_t>({}, {INT64_MIN})
      .input<int64_t>({}, {INT64_MAX})
      .input<int64_t>({}, {INT64_MAX})
      .run()
      .expect<int64_t>(0, {3}, {INT64_MIN, -1, INT64_MAX - 1});
}

TEST(Range, RefusesWhatNeverEnds) {
  auto range = [](int64_t a, int64_t b, int64_t d) {
    OpCase("Range", 11).input<int64_t>({}, {a}).input<int64_t>({}, {b}).input<int64_t>({}, {d}).run();
  };
  EXPECT_THROW(range(0, 1, 0), Error);
  EXPECT_THROW(range(INT64_MIN, INT64_MAX, 1), Error);
  auto floats = [](float a, float b, float d) {
    OpCase("Range", 11).input<float>({}, {a}).input<float>({}, {b}).input<float>({}, {d}).run();
  };
  EXPECT_THROW(floats(0, 1, 0), Error);
  EXPECT_THROW(floats(0, NAN, 1), Error);
  EXPECT_THROW(floats(0, 1e30f, 1), Error);
}

TEST(Range, IsSymbolic) {
  EXPECT_EQ(SymbolicCase("Range", 11).scalar(0).scalar("seq").scalar(1).infer().dims(), "[seq]");
  SymbolicCase c("Range", 11);
  EXPECT_EQ(c.scalar("seq").scalar(0).scalar(-1).infer().dims(), "[seq]");
}

TEST(Reshape, CopiesAndComputesDimensions) {
  OpCase("Reshape", 13)
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({2}, {0, -1})
      .run()
      .expect<float>(0, {2, 3}, {1, 2, 3, 4, 5, 6});
  OpCase("Reshape", 1)
      .input<float>({2, 2}, {1, 2, 3, 4})
      .attr("shape", std::vector<int64_t>{-1})
      .run()
      .expect<float>(0, {4}, {1, 2, 3, 4});
  OpCase("Reshape", 13)
      .input<float>({0, 3}, {})
      .input<int64_t>({2}, {0, -1})
      .run()
      .expect<float>(0, {0, 3}, {});
  OpCase("Reshape", 14)
      .input<float>({0, 3}, {})
      .attr("allowzero", int64_t{1})
      .input<int64_t>({2}, {7, 0})
      .run()
      .expect<float>(0, {7, 0}, {});
  OpCase("Reshape", 13).input<float>({1}, {5}).input<int64_t>({0}, {}).run().expect<float>(0, {}, {5});
}

TEST(Reshape, IsExactInSymbols) {
  auto shape = [](const Dims& from, const Dims& to) {
    return SymbolicCase("Reshape", 13).input(kFloat, from).list(to).infer().dims();
  };
  EXPECT_EQ(shape({"batch", "seq", 768}, {0, 0, 12, 64}), "[batch, seq, 12, 64]");
  EXPECT_EQ(shape({"batch", "seq", 768}, {"batch", "seq", 12, 64}), "[batch, seq, 12, 64]");
  EXPECT_EQ(shape({"batch", "seq", 768}, {0, -1, 12, 64}), "[batch, seq, 12, 64]");
  EXPECT_EQ(shape({"batch", "seq", 12, 64}, {0, 0, -1}), "[batch, seq, 768]");
  EXPECT_EQ(shape({"batch", "seq"}, {-1}), "[batch*seq]");
  SymbolicCase c("Reshape", 13);
  const Dim n = c.symbol("h") + Dim(1);
  EXPECT_EQ(c.input(kFloat, std::vector<Dim>{n, 8}).list(std::vector<Dim>{-1, n}).infer().dims(),
            "[8, h + 1]");
  EXPECT_EQ(c.aliases(), "view 0->0 @0");
}

TEST(Reshape, OfUnknownValuesHasTheListsRank) {
  SymbolicCase c("Reshape", 13);
  EXPECT_EQ(c.input(kFloat, Dims{"n"}).input(ElementType::kInt64, Dims{3}).infer().facts().type.rank(), 3u);
}

TEST(Reshape, RefusesWrongShapes) {
  auto reshape = [](const std::vector<int64_t>& to) {
    OpCase("Reshape", 13)
        .input<float>({2, 3}, std::vector<float>(6))
        .input<int64_t>({static_cast<int64_t>(to.size())}, to)
        .run();
  };
  for (const std::vector<int64_t>& to : {std::vector<int64_t>{4, -1},
                                         {-1, -1},
                                         {7},
                                         {-2},
                                         {2, 3, 0},
                                         {kHuge, kHuge, kHuge},
                                         {INT64_MIN, INT64_MIN}})
    EXPECT_THROW(reshape(to), Error) << to_string(to);
  EXPECT_EQ(error_of([&] { reshape({7}); }),
            "node 'node' (Reshape): shape [7] has 7 elements, the input's shape [2, 3] has 6");
}

TEST(Flatten, SplitsAtTheAxis) {
  OpCase("Flatten", 13)
      .input<float>({2, 1, 3}, std::vector<float>(6))
      .attr("axis", int64_t{-1})
      .run()
      .expect<float>(0, {2, 3}, std::vector<float>(6));
  EXPECT_EQ(SymbolicCase("Flatten", 13).input(kFloat, Dims{"b", 3, "h"}).infer().dims(), "[b, 3*h]");
  EXPECT_EQ(SymbolicCase("Flatten", 13).input(kFloat, Dims{"b", 3}).attr("axis", int64_t{2}).infer().dims(),
            "[3*b, 1]");
  EXPECT_THROW(SymbolicCase("Flatten", 13).input(kFloat, Dims{"b"}).attr("axis", int64_t{2}).infer(), Error);
}

TEST(Squeeze, DropsOnes) {
  OpCase("Squeeze", 13)
      .input<float>({1, 2, 1}, {1, 2})
      .input<int64_t>({1}, {-1})
      .run()
      .expect<float>(0, {1, 2}, {1, 2});
  OpCase("Squeeze", 11).input<float>({1, 2, 1}, {1, 2}).run().expect<float>(0, {2}, {1, 2});
  OpCase("Squeeze", 11)
      .input<float>({1, 2}, {1, 2})
      .attr("axes", std::vector<int64_t>{0})
      .run()
      .expect<float>(0, {2}, {1, 2});
  EXPECT_THROW(OpCase("Squeeze", 13).input<float>({1, 2}, {1, 2}).input<int64_t>({1}, {1}).run(), Error);
  EXPECT_EQ(SymbolicCase("Squeeze", 13).input(kFloat, Dims{"b", 1}).infer().dims(), "unranked");
  EXPECT_EQ(SymbolicCase("Squeeze", 13).input(kFloat, Dims{"b", 1, "s"}).list(Dims{1}).infer().dims(),
            "[b, s]");
}

TEST(Unsqueeze, AddsOnes) {
  OpCase("Unsqueeze", 13)
      .input<float>({2}, {1, 2})
      .input<int64_t>({2}, {-1, 0})
      .run()
      .expect<float>(0, {1, 2, 1}, {1, 2});
  OpCase("Unsqueeze", 11)
      .input<float>({}, {1})
      .attr("axes", std::vector<int64_t>{0})
      .run()
      .expect<float>(0, {1}, {1});
  EXPECT_THROW(OpCase("Unsqueeze", 13).input<float>({2}, {1, 2}).input<int64_t>({2}, {0, 0}).run(), Error);
  EXPECT_THROW(OpCase("Unsqueeze", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {2}).run(), Error);
  EXPECT_EQ(SymbolicCase("Unsqueeze", 13).scalar("seq").list(Dims{0}).infer().values(), "[seq]");
}

}  // namespace
}  // namespace plimsoll
