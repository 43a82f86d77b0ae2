#include "tensor/dim.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

class DimTest : public ::testing::Test {
 protected:
  Budget budget_{"test", 0};
  BumpArena arena_{budget_};
  DimPool pool_{arena_};
  const Dim batch_ = pool_.symbol("batch"), seq_ = pool_.symbol("seq");
};

TEST_F(DimTest, MaximumOfWhatItAlreadyCoversIsItself) {
  const Dim larger = max(batch_, seq_);
  EXPECT_EQ(max(larger, seq_), larger);
  EXPECT_EQ(max(batch_, larger), larger);
  EXPECT_EQ(max(max(larger, Dim(7) * seq_), seq_), max(larger, Dim(7) * seq_));
  EXPECT_TRUE(known_at_least(larger, batch_));
  EXPECT_FALSE(known_at_least(batch_, larger));
  EXPECT_FALSE(known_at_least(larger, batch_ + seq_));
}

TEST_F(DimTest, NestedMaximaAreWrittenAsOne) {
  const Dim third = pool_.symbol("third");
  EXPECT_EQ(max(max(batch_, seq_), third).to_string(), "max(batch, seq, third)");
  EXPECT_EQ((Dim(2) * max(batch_, seq_ + Dim(1))).to_string(), "2*max(batch, seq + 1)");
}

TEST_F(DimTest, MaximaEvaluate) {
  const Dim larger = max(max(batch_, seq_ * Dim(2)), Dim(5));
  const auto at = [&](int64_t batch, int64_t seq) {
    return larger.evaluate([=](std::string_view name) { return name == "batch" ? batch : seq; });
  };
  EXPECT_EQ(at(9, 3), 9);
  EXPECT_EQ(at(1, 4), 8);
  EXPECT_EQ(at(1, 1), 5);
}

TEST_F(DimTest, FloorsOfFloorsAreOne) {
  const Dim half = floor_div(batch_ + Dim(1), Dim(2));
  const Dim quarter = floor_div(half + Dim(1), Dim(2));
  EXPECT_EQ(quarter.to_string(), "floor((batch + 3)/(4))");
  for (int64_t n = 0; n < 100; ++n) {
    for (int64_t c : {-3, 0, 1, 5}) {
      const Dim nested = floor_div(floor_div(Dim(3) * batch_ - Dim(2), Dim(5)) + Dim(c), Dim(7));
      const int64_t expected = floor_div(floor_div(Dim(3 * n - 2), Dim(5)) + Dim(c), Dim(7)).value();
      EXPECT_EQ(nested.evaluate([n](std::string_view) { return n; }), expected) << n << " " << c;
    }
  }
}

}  // namespace
}  // namespace plimsoll
