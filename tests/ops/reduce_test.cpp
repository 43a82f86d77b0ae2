#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

using Axes = std::vector<int64_t>;

std::vector<float> counting(size_t count) {
  std::vector<float> x;
  for (size_t i = 0; i < count; ++i) x.push_back(static_cast<float>(i));
  return x;
}

TEST(Reduce, AxesByAttributeAndByInput) {
  OpCase("ReduceMean", 11)
      .attr("axes", Axes{1})
      .input<float>({2, 3}, counting(6))
      .run()
      .expect<float>(0, {2, 1}, {1, 4});
  OpCase("ReduceMean", 18)
      .input<float>({2, 3}, counting(6))
      .input<int64_t>({1}, {-1})
      .run()
      .expect<float>(0, {2, 1}, {1, 4});
  OpCase("ReduceSum", 13)
      .attr("keepdims", int64_t{0})
      .input<float>({2, 3}, counting(6))
      .input<int64_t>({1}, {0})
      .run()
      .expect<float>(0, {3}, {3, 5, 7});
  OpCase("ReduceSum", 11)
      .attr("axes", Axes{0, -1})
      .attr("keepdims", int64_t{0})
      .input<float>({2, 2, 2}, counting(8))
      .run()
      .expect<float>(0, {2}, {0 + 1 + 4 + 5, 2 + 3 + 6 + 7});
  OpCase("ReduceSum", 13).input<float>({2, 2}, counting(4)).run().expect<float>(0, {1, 1}, {6});
  OpCase("ReduceSum", 13)
      .attr("noop_with_empty_axes", int64_t{1})
      .input<float>({2}, {1, 2})
      .input<int64_t>({0}, {})
      .run()
      .expect<float>(0, {2}, {1, 2});
  OpCase("ReduceSum", 13).input<float>({}, {3}).run().expect<float>(0, {}, {3});
  EXPECT_THROW(OpCase("ReduceSum", 11).attr("axes", Axes{2}).input<float>({2, 2}, counting(4)).run(), Error);
  EXPECT_THROW(OpCase("ReduceSum", 13).input<float>({2}, {1, 2}).input<int64_t>({1}, {-2}).run(), Error);
}

TEST(Reduce, EveryKind) {
  const std::vector<float> x = {-1, 2, -3, 4};
  const auto expect = [&](const char* op, float value) {
    OpCase(op, 18).input<float>({2, 2}, x).run().expect<float>(0, {1, 1}, {value}, 1e-5);
    const std::vector<double> wide(x.begin(), x.end());
    OpCase(op, 18).input<double>({2, 2}, wide).run().expect<double>(0, {1, 1}, {double{value}}, 1e-5);
  };
  expect("ReduceSum", 2);
  expect("ReduceMean", 0.5);
  expect("ReduceMax", 4);
  expect("ReduceMin", -3);
  expect("ReduceProd", 24);
  expect("ReduceL1", 10);
  expect("ReduceL2", std::sqrt(30.0f));
  expect("ReduceLogSum", std::log(2.0f));
  expect("ReduceLogSumExp", std::log(std::exp(-1.0f) + std::exp(2.0f) + std::exp(-3.0f) + std::exp(4.0f)));
  expect("ReduceSumSquare", 30);
}

TEST(Reduce, OtherTypes) {
  OpCase("ReduceSum", 13)
      .input<int32_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({1}, {0})
      .run()
      .expect<int32_t>(0, {1, 2}, {4, 6});
  OpCase("ReduceMax", 18).input<uint8_t>({3}, {1, 255, 3}).run().expect<uint8_t>(0, {1}, {255});
  OpCase("ReduceMax", 20).input<bool>({3}, {false, true, false}).run().expect<bool>(0, {1}, {true});
  OpCase("ReduceMean", 18).input<int64_t>({2}, {-3, -4}).run().expect<int64_t>(0, {1}, {-3});
  OpCase("ReduceMean", 18)
      .input<Float16>({2}, {Float16(1), Float16(2)})
      .run()
      .expect<Float16>(0, {1}, {Float16(1.5f)});
  OpCase("ReduceL2", 18).input<int32_t>({2}, {3, 4}).run().expect<int32_t>(0, {1}, {5});
}

TEST(Reduce, NothingToReduce) {
  const float infinity = std::numeric_limits<float>::infinity();
  OpCase("ReduceSum", 13)
      .input<float>({2, 0}, {})
      .input<int64_t>({1}, {1})
      .run()
      .expect<float>(0, {2, 1}, {0, 0});
  OpCase("ReduceProd", 18).input<float>({0}, {}).run().expect<float>(0, {1}, {1});
  const auto max = OpCase("ReduceMax", 18).input<float>({0}, {}).run().result().as<float>()[0];
  EXPECT_EQ(max, -infinity);
  OpCase("ReduceSum", 13)
      .input<float>({0, 2}, {})
      .input<int64_t>({1}, {1})
      .run()
      .expect<float>(0, {0, 1}, {});
  OpCase("ReduceMin", 20)
      .input<int32_t>({0}, {})
      .run()
      .expect<int32_t>(0, {1}, {std::numeric_limits<int32_t>::max()});
}

TEST(Reduce, SpatialMeanOfChannelsLast) {
  std::vector<float> x(2 * 12 * 12 * 70), expected(2 * 70);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((i * 7919) % 1000) / 1000;
    expected[i / (144 * 70) * 70 + i % 70] += x[i] / 144;
  }
  for (int threads : {1, 2})
    OpCase("ReduceMean", 18)
        .threads(threads)
        .input<float>({2, 12, 12, 70}, x)
        .input<int64_t>({2}, {1, 2})
        .run()
        .expect<float>(0, {2, 1, 1, 70}, expected, 1e-5);
}

TEST(Softmax, AxesOfOldAndNewOpsets) {
  const float e = std::exp(1.0f);
  OpCase("Softmax", 13)
      .input<float>({1, 2}, {0, 1})
      .run()
      .expect<float>(0, {1, 2}, {1 / (1 + e), e / (1 + e)});
  OpCase("Softmax", 13)
      .attr("axis", int64_t{0})
      .input<float>({2, 1}, {0, 1})
      .run()
      .expect<float>(0, {2, 1}, {1 / (1 + e), e / (1 + e)});
  OpCase("Softmax", 11)
      .input<float>({1, 2, 2}, {0, 0, 0, 0})
      .run()
      .expect<float>(0, {1, 2, 2}, {.25, .25, .25, .25});
  OpCase("LogSoftmax", 13)
      .input<double>({1, 2}, {0, 0})
      .run()
      .expect<double>(0, {1, 2}, {-std::log(2.0), -std::log(2.0)});
  // What is taken off large numbers is not rounded away.
  const float half = -std::log(2.0f);
  OpCase("LogSoftmax", 13).input<float>({1, 2}, {1e30f, 1e30f}).run().expect<float>(0, {1, 2}, {half, half});
  OpCase("LogSoftmax", 13)
      .attr("axis", int64_t{0})
      .input<float>({2, 1}, {1e30f, 1e30f})
      .run()
      .expect<float>(0, {2, 1}, {half, half});
  OpCase("Softmax", 13)
      .attr("axis", int64_t{1})
      .input<Float16>({1, 2, 1}, {Float16(1), Float16(1)})
      .run()
      .expect<Float16>(0, {1, 2, 1}, {Float16(.5f), Float16(.5f)});
  OpCase("Softmax", 13).input<float>({0, 3}, {}).run().expect<float>(0, {0, 3}, {});
  EXPECT_THROW(OpCase("Softmax", 13).attr("axis", int64_t{2}).input<float>({1, 2}, {0, 1}).run(), Error);
}

TEST(LayerNormalization, GivesItsMoments) {
  OpCase("LayerNormalization", 17)
      .outputs(3)
      .attr("axis", int64_t{1})
      .attr("epsilon", 0.0f)
      .input<float>({2, 2, 1}, {1, 3, 2, 6})
      .input<float>({2, 1}, {1, 2})
      .input<float>({2, 1}, {0, 10})
      .run()
      .expect<float>(0, {2, 2, 1}, {-1, 12, -1, 12})
      .expect<float>(1, {2, 1, 1}, {2, 4})
      .expect<float>(2, {2, 1, 1}, {1, 0.5});
  OpCase("LayerNormalization", 17)
      .attr("epsilon", 0.0f)
      .input<double>({1, 2}, {1, 3})
      .input<double>({2}, {1, 2})
      .run()
      .expect<double>(0, {1, 2}, {-1, 2});
  EXPECT_THROW(
      OpCase("LayerNormalization", 17).input<float>({1, 2}, {1, 3}).input<float>({3}, {1, 2, 3}).run(),
      Error);
}

TEST(LayerNormalization, OfNoColumnsAddsNoBias) {
  OpCase("LayerNormalization", 17)
      .attr("axis", int64_t{-2})
      .input<BFloat16>({2, 0, 1}, {})
      .input<BFloat16>({0, 1}, {})
      .input<BFloat16>({}, {BFloat16(1)})
      .run()
      .expect<BFloat16>(0, {2, 0, 1}, {});
}

TEST(BatchNormalization, InferenceAndTraining) {
  const auto with = [](OpCase&& c) -> OpCase& {
    return c.attr("epsilon", 0.0f)
        .input<float>({2}, {1, 2})
        .input<float>({2}, {0, 1})
        .input<float>({2}, {1, 2})
        .input<float>({2}, {4, 16})
        .run();
  };
  with(std::move(OpCase("BatchNormalization", 9).input<float>({1, 2, 2}, {1, 3, 2, 4})))
      .expect<float>(0, {1, 2, 2}, {0, 1, 1, 2});
  with(std::move(OpCase("BatchNormalization", 15, std::string(kPlimsollDomain))
                     .attr("channels_last", int64_t{1})
                     .input<float>({1, 2, 2}, {1, 2, 3, 4})))
      .expect<float>(0, {1, 2, 2}, {0, 1, 1, 2});
  with(std::move(OpCase("BatchNormalization", 15)
                     .attr("training_mode", int64_t{1})
                     .outputs(3)
                     .input<float>({1, 2, 2}, {1, 3, 2, 4})))
      .expect<float>(0, {1, 2, 2}, {-1, 1, -1, 3})
      .expect<float>(1, {2}, {1 * 0.9f + 2 * 0.1f, 2 * 0.9f + 3 * 0.1f})
      .expect<float>(2, {2}, {4 * 0.9f + 0.1f, 16 * 0.9f + 0.1f});
  EXPECT_THROW(with(std::move(OpCase("BatchNormalization", 9).input<float>({1, 3}, {1, 2, 3}))), Error);
}

TEST(InstanceNormalization, NormalizesEachImage) {
  OpCase("InstanceNormalization", 6)
      .attr("epsilon", 0.0f)
      .input<float>({1, 2, 2}, {1, 3, 2, 6})
      .input<float>({2}, {1, 2})
      .input<float>({2}, {0, 10})
      .run()
      .expect<float>(0, {1, 2, 2}, {-1, 1, 8, 12});
}

// Nothing is reduced, but the steps besides are taken.
TEST(Reduce, WithoutAxesTheRestIsDone) {
  const std::vector<float> x = {-2, 3};
  const auto noop = [&](const char* op) {
    OpCase run(op, 18);
    run.attr("noop_with_empty_axes", int64_t{1}).input<float>({2}, x).run();
    return std::vector<float>(run.result().as<float>(), run.result().as<float>() + 2);
  };
  EXPECT_EQ(noop("ReduceSumSquare"), (std::vector<float>{4, 9}));
  EXPECT_EQ(noop("ReduceL1"), (std::vector<float>{2, 3}));
  EXPECT_EQ(noop("ReduceL2"), (std::vector<float>{2, 3}));
  EXPECT_EQ(noop("ReduceMean"), x);
  EXPECT_EQ(noop("ReduceLogSumExp"), x);
  EXPECT_FLOAT_EQ(noop("ReduceLogSum")[1], std::log(3.0f));
  OpCase("ReduceL1", 18)
      .attr("noop_with_empty_axes", int64_t{1})
      .input<int32_t>({2}, {-2, 3})
      .run()
      .expect<int32_t>(0, {2}, {2, 3});
}

// Before opset 14 outputs besides Y say that it trains.
TEST(BatchNormalization, TrainsInOlderOpsets) {
  OpCase("BatchNormalization", 9)
      .attr("momentum", 0.5f)
      .attr("epsilon", 0.0f)
      .input<float>({2, 1, 2}, {1, 3, 5, 7})
      .input<float>({1}, {2})
      .input<float>({1}, {1})
      .input<float>({1}, {0})
      .input<float>({1}, {1})
      .outputs(5)
      .run()
      .expect<float>(0, {2, 1, 2}, {-1.68328f, 0.105573f, 1.894427f, 3.68328f})
      .expect<float>(1, {1}, {2})
      .expect<float>(2, {1}, {3})
      .expect<float>(3, {1}, {4})
      .expect<float>(4, {1}, {5});
}

TEST(Dropout, PassesAndMasks) {
  OpCase("Dropout", 13)
      .outputs(2)
      .input<float>({2}, {1, 2})
      .run()
      .expect<float>(0, {2}, {1, 2})
      .expect<bool>(1, {2}, {true, true});
  OpCase("Dropout", 7).attr("ratio", 0.3f).input<float>({2}, {1, 2}).run().expect<float>(0, {2}, {1, 2});
}

// Kept elements grow by 1 / (1 - ratio); the mask tells which they are, and about as many as should be.
TEST(Dropout, TrainsTheSameForTheSameSeed) {
  const std::vector<float> x(10007, 3.0f);
  const auto drop = [&](int64_t seed) {
    OpCase run = OpCase("Dropout", 13);
    run.attr("seed", seed).input<float>({10007}, x).input<float>({}, {0.25f}).input<bool>({}, {true});
    run.outputs(2).run();
    const float* y = run.result(0).as<float>();
    const bool* mask = run.result(1).as<bool>();
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], mask[i] ? 4.0f : 0.0f);
    return std::vector<float>(y, y + x.size());
  };
  const std::vector<float> first = drop(5);
  EXPECT_EQ(first, drop(5));
  EXPECT_NE(first, drop(6));
  const auto kept = static_cast<double>(std::count(first.begin(), first.end(), 4.0f));
  EXPECT_NEAR(kept, 10007 * 0.75, 5 * std::sqrt(10007 * 0.75 * 0.25));
  EXPECT_THROW(
      OpCase("Dropout", 13).input<float>({1}, {1}).input<float>({}, {1}).input<bool>({}, {true}).run(),
      Error);
  OpCase("Dropout", 6)
      .input<float>({2}, {1, 2})
      .attr("is_test", int64_t{1})
      .run()
      .expect<float>(0, {2}, {1, 2});
}

}  // namespace
}  // namespace plimsoll
