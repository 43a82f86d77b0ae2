#include "tensor/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "base/checked.h"
#include "plimsoll/error.h"

namespace plimsoll {
namespace {

class DimTest : public testing::Test {
 protected:
  Budget budget_{"test", 0};
  BumpArena arena_{budget_};
  DimPool pool_{arena_};
  Dim b_ = pool_.symbol("b");
  Dim s_ = pool_.symbol("s");
};

}  // namespace

TEST_F(DimTest, EqualExpressionsAreEqual) {
  EXPECT_EQ((b_ + Dim(1)) * (b_ - Dim(1)), b_ * b_ - Dim(1));
  EXPECT_EQ(b_ * s_ * Dim(768), Dim(768) * s_ * b_);
  EXPECT_EQ(b_ - b_, Dim(0));
  EXPECT_FALSE(b_ == s_);
  EXPECT_EQ(pool_.symbol("b"), b_);
}

TEST_F(DimTest, DivisionSimplifiesWhereItIsExact) {
  EXPECT_EQ(floor_div(b_ * s_ * Dim(768), b_ * s_), Dim(768));
  EXPECT_EQ(floor_div(Dim(768) * s_, Dim(12)), Dim(64) * s_);
  EXPECT_EQ(floor_div(s_ * Dim(2) + Dim(5), Dim(2)), s_ + Dim(2));
  EXPECT_EQ(floor_div(s_ + Dim(7), Dim(2)), floor_div(s_ + Dim(1), Dim(2)) + Dim(3));
  EXPECT_THROW(floor_div(s_, Dim(0)), Error);
}

TEST_F(DimTest, PrintsWhatAPersonWouldWrite) {
  EXPECT_EQ((Dim(4) * b_ * s_ + Dim(3)).to_string(), "4*b*s + 3");
  EXPECT_EQ((b_ * b_ - s_).to_string(), "b**2 - s");
  EXPECT_EQ(max(b_, s_).to_string(), "max(b, s)");
}

TEST_F(DimTest, ComparesForAllSizes) {
  EXPECT_TRUE(known_at_least(Dim(2) * b_ * s_, b_ * s_ + b_));
  EXPECT_TRUE(known_at_least(b_, Dim(1)));
  EXPECT_FALSE(known_at_least(b_, s_));
  EXPECT_FALSE(known_at_least(b_, Dim(2)));
  EXPECT_EQ(max(b_ * Dim(3), b_), b_ * Dim(3));
  EXPECT_EQ(min(b_ * Dim(3), b_), b_);
}

// Arithmetic across pools would leave an expression that outlives what it points at.
TEST_F(DimTest, PoolsDoNotMix) {
  BumpArena arena(budget_);
  DimPool other(arena);
  const Dim c = other.symbol("c");
  EXPECT_THROW(b_ + c, std::logic_error);
  EXPECT_THROW(b_ * c, std::logic_error);
  EXPECT_THROW(max(b_, c), std::logic_error);
  EXPECT_THROW(floor_div(b_, c), std::logic_error);
  EXPECT_EQ(b_ + pool_.import(c), b_ + pool_.symbol("c"));
}

TEST_F(DimTest, ImportedExpressionsAreTheSame) {
  const Dim unknown = pool_.fresh("rows");
  const Dim all[] = {Dim(7),
                     b_,
                     b_ * b_ * s_ * Dim(3) - s_ + Dim(5),
                     floor_div(b_ * s_ + Dim(1), Dim(3)),
                     max(b_, floor_div(s_ + Dim(2), b_)),
                     min(b_, s_),
                     unknown * Dim(2)};
  for (const Dim dim : all) {
    BumpArena arena(budget_);
    DimPool other(arena);
    other.symbol("s");  // so that symbols have other numbers there
    const Dim copy = other.import(dim);
    EXPECT_EQ(other.import(dim), copy);
    EXPECT_EQ(copy.depends_on_data(), dim.depends_on_data());
    for (const int64_t b : {1, 2, 9}) {
      const auto lookup = [&](std::string_view name) { return name == "b" ? b : int64_t{5}; };
      EXPECT_EQ(copy.evaluate(lookup), dim.evaluate(lookup)) << dim.to_string();
    }
    EXPECT_EQ(pool_.import(copy), dim) << dim.to_string();
  }
}

// A maximum is a size only if one of its sides is: Slice holds positions to -1.
TEST_F(DimTest, AMaximumMayBeNegative) {
  const Dim held = max(Dim(-1), s_ - Dim(7));
  EXPECT_FALSE(known_at_least(held, Dim(0)));
  EXPECT_TRUE(known_at_least(max(b_ - Dim(7), s_), Dim(1)));
  const Dim count = max(Dim(0), Dim(0) - held);
  EXPECT_EQ(count.evaluate([](std::string_view) { return 1; }), 1);
  EXPECT_EQ(count.evaluate([](std::string_view) { return 9; }), 0);
}

TEST_F(DimTest, OverflowIsAnError) {
  const Dim huge = int64_t{1} << 62;
  EXPECT_THROW(huge * Dim(4), Error);
  EXPECT_THROW(huge * b_ * Dim(4), Error);
}

TEST_F(DimTest, KnowsWhatDependsOnData) {
  const Dim count = pool_.fresh("count");
  EXPECT_TRUE((count * b_).depends_on_data());
  EXPECT_TRUE(floor_div(count, Dim(2)).depends_on_data());
  EXPECT_FALSE((b_ * s_).depends_on_data());
}

// The canonical form computes what the operations say, at random points.
TEST_F(DimTest, EvaluatesLikeIntegers) {
  std::mt19937 random(1);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    const int64_t b = pick(1, 50), s = pick(1, 50);
    auto lookup = [&](std::string_view name) { return name == "b" ? b : s; };
    Dim dim = b_;
    int64_t value = b;
    for (int step = 0; step < 6; ++step) {
      const bool symbol = pick(0, 1) == 1;
      const int64_t number = pick(1, 9);
      const Dim other = symbol ? s_ : Dim(number);
      const int64_t other_value = symbol ? s : number;
      switch (pick(0, 4)) {
        case 0:
          dim = dim + other, value += other_value;
          break;
        case 1:
          dim = dim - other, value -= other_value;
          break;
        case 2:
          dim = dim * other, value *= other_value;
          break;
        case 3:
          dim = floor_div(dim, other), value = floor_div(value, other_value);
          break;
        default:
          dim = max(dim, other), value = std::max(value, other_value);
          break;
      }
      if (std::abs(value) > 1000000) break;
    }
    ASSERT_EQ(dim.evaluate(lookup), value) << dim.to_string() << " at b=" << b << ", s=" << s;
  }
}

}  // namespace plimsoll
