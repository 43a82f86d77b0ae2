#include <cmath>
#include <limits>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

int64_t code(ElementType type) {
  return static_cast<int64_t>(type);
}

TEST(Cast, BetweenNumbers) {
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kInt32))
      .input<float>({4}, {-1.9f, 1.9f, 3e9f, NAN})
      .run()
      .expect<int32_t>(0, {4}, {-1, 1, std::numeric_limits<int32_t>::max(), 0});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kInt64))
      .input<double>({3}, {1e300, -1e300, -2.5})
      .run()
      .expect<int64_t>(0, {3},
                       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), -2});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kUint8))
      .input<float>({3}, {300, -1, 7})
      .run()
      .expect<uint8_t>(0, {3}, {44, 255, 7});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kUint64))
      .input<float>({3}, {-1, 1e30f, 5})
      .run()
      .expect<uint64_t>(0, {3},
                        {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max(), 5});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kInt8))
      .input<int64_t>({2}, {257, -129})
      .run()
      .expect<int8_t>(0, {2}, {1, 127});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kFloat))
      .input<uint64_t>({1}, {std::numeric_limits<uint64_t>::max()})
      .run()
      .expect<float>(0, {1}, {18446744073709551616.0f});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kBool))
      .input<float>({4}, {0, -0.0f, 0.1f, NAN})
      .run()
      .expect<bool>(0, {4}, {false, false, true, true});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kFloat))
      .input<bool>({2}, {true, false})
      .run()
      .expect<float>(0, {2}, {1, 0});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kFloat))
      .input<float>({0}, {})
      .run()
      .expect<float>(0, {0}, {});
  OpCase("Cast", 5).attr("to", "INT64").input<float>({1}, {7}).run().expect<int64_t>(0, {1}, {7});
  OpCase("CastLike", 15).input<float>({1}, {7.5}).input<int16_t>({0}, {}).run().expect<int16_t>(0, {1}, {7});
}

TEST(Cast, HalfTypes) {
  OpCase large("Cast", 13);
  large.attr("to", code(ElementType::kFloat16)).input<float>({2}, {1.5, 1e6f}).run();
  EXPECT_EQ(large.result().as<Float16>()[0].bits, 0x3e00);
  EXPECT_EQ(large.result().as<Float16>()[1].bits, 0x7c00);  // infinity
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kBFloat16))
      .input<Float16>({1}, {Float16(1.5f)})
      .run()
      .expect<BFloat16>(0, {1}, {BFloat16(1.5f)});
}

TEST(Cast, LongTensorsInChunks) {
  std::vector<int32_t> x(70001);
  std::vector<double> expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] = static_cast<int32_t>(i) - 30000;
  for (int threads : {1, 2})
    OpCase("Cast", 13)
        .threads(threads)
        .attr("to", code(ElementType::kDouble))
        .input<int32_t>({70001}, x)
        .run()
        .expect<double>(0, {70001}, expected, 0);
}

TEST(Cast, ToText) {
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kString))
      .input<float>({5}, {0.9767611f, 1.5f, NAN, std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()})
      .run()
      .expect<StringRef>(0, {5}, {{"0.9767611", 9}, {"1.5", 3}, {"NaN", 3}, {"INF", 3}, {"-INF", 4}});
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kString))
      .input<int64_t>({1}, {-42})
      .run()
      .expect<StringRef>(0, {1}, {{"-42", 3}});
}

TEST(Cast, FromText) {
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kFloat))
      .input<StringRef>({4}, {{"0.47892547", 10}, {"1e-5", 4}, {" 1E8 ", 5}, {"-7", 2}})
      .run()
      .expect<float>(0, {4}, {0.47892547f, 1e-5f, 1e8f, -7}, 1e-9);
  const float infinity = std::numeric_limits<float>::infinity();
  OpCase special("Cast", 13);
  special.attr("to", code(ElementType::kFloat))
      .input<StringRef>({6}, {{"NaN", 3}, {"INF", 3}, {"+INF", 4}, {"-INF", 4}, {"1e99", 4}, {"-1e999", 6}})
      .run();
  const float* found = special.result().as<float>();
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_EQ(found[1], infinity);
  EXPECT_EQ(found[2], infinity);
  EXPECT_EQ(found[3], -infinity);
  EXPECT_EQ(found[4], infinity);
  EXPECT_EQ(found[5], -infinity);
  OpCase("Cast", 13)
      .attr("to", code(ElementType::kInt64))
      .input<StringRef>({2}, {{"9007199254740993", 16}, {"3.7", 3}})
      .run()
      .expect<int64_t>(0, {2}, {9007199254740993, 3});
  for (std::string_view bad : {"", "abc", "1x", "+-1", "1 2"})
    EXPECT_THROW(OpCase("Cast", 13)
                     .attr("to", code(ElementType::kFloat))
                     .input<StringRef>({1}, {{bad.data(), bad.size()}})
                     .run(),
                 Error)
        << bad;
}

TEST(Cast, RejectsUnknownTypes) {
  EXPECT_THROW(OpCase("Cast", 13).attr("to", int64_t{99}).input<float>({1}, {1}).run(), Error);
  EXPECT_THROW(OpCase("Cast", 13).attr("to", code(ElementType::kComplex64)).input<float>({1}, {1}).run(),
               Error);
}

}  // namespace
}  // namespace plimsoll
