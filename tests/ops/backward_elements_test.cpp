// Operators that gradients make of what works element by element, and of pooling.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "ops/backward_case.h"

namespace plimsoll {
namespace {

// ---- AccumulateGradient ---------------------------------------------------------------------------

TEST(AccumulateGradient, AddsOrBeginsAnew) {
  for (bool anew : {false, true}) {
    OpCase("AccumulateGradient", 1, kOurs)
        .input<float>({3}, {1, 2, 3})
        .input<float>({3}, {10, 20, -30})
        .input<bool>({}, {anew})
        .run()
        .expect<float>(0, {3}, anew ? std::vector<float>{10, 20, -30} : std::vector<float>{11, 22, -27});
  }
}

TEST(AccumulateGradient, RefusesOtherShapesAndTypes) {
  const std::vector<float> two{1, 2}, three{1, 2, 3};
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<float>& gradient) {
    auto made = std::make_unique<OpCase>("AccumulateGradient", 1, kOurs);
    made->input<float>({3}, three).input<float>(dims, gradient);
    return made;
  };
  refuses(op({2}, two)->input<bool>({}, {false}), "input 1: expected shape");
  refuses(op({3, 1}, three)->input<bool>({}, {false}), "input 1: expected shape");
  refuses(op({3}, three)->input<bool>({0}, {}), "input 2: expected one element");
  refuses(op({3}, three)->input<bool>({2}, {false, true}), "input 2: expected one element");
  refuses(op({3}, three)->input<int64_t>({}, {1}), "type int64 is not allowed");
  refuses(*op({3}, three), "inputs");
  refuses(OpCase("AccumulateGradient", 1, kOurs)
              .input<double>({1}, {1})
              .input<float>({1}, {1})
              .input<bool>({}, {true}),
          "expected one type");
}

// ---- DropoutGradient ------------------------------------------------------------------------------

TEST(DropoutGradient, DropsWhatDropoutDropped) {
  const std::vector<float> numbers(64, 3.0f);
  OpCase forward("Dropout", 13);  // its node, and so its stream, is named "node"
  forward.input<float>({64}, numbers).input<float>({}, {0.5f}).input<bool>({}, {true});
  forward.attr("seed", int64_t{7}).outputs(2).run();
  std::vector<float> expected(64);
  size_t kept = 0;
  for (size_t i = 0; i < 64; ++i) {
    const bool keeps = forward.result(1).as<bool>()[i];
    expected[i] = keeps ? 2 * (static_cast<float>(i) + 1) : 0;
    kept += keeps ? 1 : 0;
  }
  EXPECT_GT(kept, 8u);
  EXPECT_LT(kept, 56u);
  std::vector<float> gradient(64);
  for (size_t i = 0; i < 64; ++i) gradient[i] = static_cast<float>(i) + 1;
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({64}, gradient)
      .attr("stream", "node")
      .attr("seed", int64_t{7})
      .attr("trains", int64_t{1})
      .run()
      .expect<float>(0, {64}, expected);
}

TEST(DropoutGradient, PassesWhereNothingWasDropped) {
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({2}, {1, -2})
      .attr("stream", "node")
      .run()
      .expect<float>(0, {2}, {1, -2});
  OpCase("DropoutGradient", 1, kOurs)
      .input<float>({2}, {1, -2})
      .input<float>({}, {0.5f})
      .input<bool>({}, {false})
      .attr("stream", "node")
      .attr("trains", int64_t{1})
      .run()
      .expect<float>(0, {2}, {1, -2});
}

TEST(DropoutGradient, RefusesWhatDoesNotFit) {
  const auto op = [] {
    auto made = std::make_unique<OpCase>("DropoutGradient", 1, kOurs);
    made->input<float>({2}, {1, 2}).attr("stream", "node");
    return made;
  };
  refuses(OpCase("DropoutGradient", 1, kOurs).input<float>({2}, {1, 2}), "stream");
  refuses(OpCase("DropoutGradient", 1, kOurs).input<int64_t>({2}, {1, 2}).attr("stream", "node"),
          "type int64 is not allowed");
  refuses(op()->attr("trains", int64_t{1}).attr("ratio", 1.0f), "[0, 1)");
  refuses(op()->attr("trains", int64_t{1}).attr("ratio", -0.5f), "[0, 1)");
  refuses(op()->attr("ratio", 1.5f).absent().input<bool>({}, {true}), "[0, 1)");
  refuses(op()->input<float>({}, {1.0f}).input<bool>({}, {true}), "[0, 1)");
  refuses(op()->input<float>({0}, {}).input<bool>({}, {true}), "input 1: expected one element");
  refuses(op()->input<float>({}, {0.5f}).input<bool>({0}, {}), "input 2: expected one element");
  refuses(op()->input<float>({}, {0.5f}).input<float>({}, {1}), "type float is not allowed");
}

// ---- PoolGradient ---------------------------------------------------------------------------------

TEST(PoolGradient, AverageShares) {
  const auto op = [](int64_t padded) {
    auto made = std::make_unique<OpCase>("PoolGradient", 1, kOurs);
    made->input<float>({1, 1, 2}, {2, 4}).input<int64_t>({3}, {1, 1, 3}).attr("kind", "average");
    made->attr("kernel_shape", std::vector<int64_t>{2}).attr("strides", std::vector<int64_t>{2});
    if (padded >= 0) made->attr("pads", std::vector<int64_t>{1, 0}).attr("count_include_pad", padded);
    return made;
  };
  op(0)->run().expect<float>(0, {1, 1, 3}, {2, 2, 2});
  op(1)->run().expect<float>(0, {1, 1, 3}, {1, 2, 2});
  op(-1)->attr("ceil_mode", int64_t{1}).run().expect<float>(0, {1, 1, 3}, {1, 1, 4});
}

TEST(PoolGradient, TheFirstOfTheLargestTakesAll) {
  OpCase("PoolGradient", 1, kOurs)
      .input<float>({1, 1, 1, 2}, {3, 7})
      .input<int64_t>({4}, {1, 1, 2, 3})
      .input<float>({1, 1, 2, 3}, {1, 5, 5, 4, 5, 0})
      .attr("kind", "max")
      .attr("kernel_shape", std::vector<int64_t>{2, 2})
      .run()
      .expect<float>(0, {1, 1, 2, 3}, {0, 10, 0, 0, 0, 0});
}

TEST(PoolGradient, TapsAreCountedInsideTheImage) {
  const std::vector<int64_t> kernel{2, 2}, pads{1, 1, 0, 0};
  OpCase("MaxPoolTaps", 1, kOurs)
      .input<float>({1, 1, 2, 2}, {1, 5, 5, 4})
      .attr("kernel_shape", kernel)
      .attr("pads", pads)
      .outputs(2)
      .run()
      .expect<float>(0, {1, 1, 2, 2}, {1, 5, 5, 5})
      .expect<uint8_t>(1, {1, 1, 2, 2}, {0, 1, 1, 1});
  OpCase("PoolGradient", 1, kOurs)
      .input<float>({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<int64_t>({4}, {1, 1, 2, 2})
      .absent()
      .absent()
      .input<uint8_t>({1, 1, 2, 2}, {0, 1, 1, 1})
      .attr("kind", "max")
      .attr("kernel_shape", kernel)
      .attr("pads", pads)
      .run()
      .expect<float>(0, {1, 1, 2, 2}, {1, 6, 3, 0});
  OpCase large("MaxPoolTaps", 1, kOurs);
  large.input<float>({1, 1, 300}, std::vector<float>(300));
  large.attr("kernel_shape", std::vector<int64_t>{257}).outputs(2);
  EXPECT_THROW(large.run(), Error);
}

TEST(PoolGradient, ByTheNorm) {
  OpCase("PoolGradient", 1, kOurs)
      .input<float>({1, 1, 2}, {1, 2})
      .input<int64_t>({3}, {1, 1, 4})
      .input<float>({1, 1, 4}, {1, -2, 2, 3})
      .input<float>({1, 1, 2}, {2.080084f, 3.271066f})
      .attr("kind", "lp")
      .attr("p", 3.0f)
      .attr("kernel_shape", std::vector<int64_t>{2})
      .attr("strides", std::vector<int64_t>{2})
      .run()
      .expect<float>(0, {1, 1, 4}, {0.23112f, -0.924482f, 0.747672f, 1.68226f});
}

TEST(PoolGradient, RefusesWhatDoesNotFit) {
  const std::vector<int64_t> two{2}, shape{1, 1, 3};
  const auto op = [&](const std::vector<int64_t>& dims, const std::vector<float>& gradient,
                      const std::vector<int64_t>& sizes, const char* kind = "average") {
    auto made = std::make_unique<OpCase>("PoolGradient", 1, kOurs);
    made->input<float>(dims, gradient).input<int64_t>({static_cast<int64_t>(sizes.size())}, sizes);
    made->attr("kind", kind).attr("kernel_shape", two);
    return made;
  };
  refuses(*op({1, 1, 2}, {1, 2}, {1, 1, 8}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {4, 1, 3}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {1, 9, 3}), "input 0: expected shape");
  refuses(*op({1, 1, 2}, {1, 2}, {1, 3}), "shape: expected 3 sizes");
  refuses(*op({1, 2}, {1, 2}, {1, 3}), "expected a rank from 3");
  refuses(*op({1, 1, 2}, {1, 2}, shape, "least"), "'kind'");
  refuses(*op({1, 1, 2}, {1, 2}, shape, "max"), "input 2 is missing");
  refuses(op({1, 1, 2}, {1, 2}, shape, "lp")->input<float>({1, 1, 3}, {1, 2, 3}), "input 3 is missing");
  const auto with_x = [&](const std::vector<int64_t>& dims) {
    auto made = op({1, 1, 2}, {1, 2}, shape, "max");
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    made->input<float>(dims, std::vector<float>(static_cast<size_t>(count), 1.0f));
    return made;
  };
  refuses(*with_x({1, 1, 4}), "input 0: expected shape");
  refuses(*with_x({2, 1, 3}), "input 0: expected shape");
  refuses(*with_x({1, 2, 3}), "input 0: expected shape");
  refuses(*with_x({3}), "input 0");
  refuses(*with_x({1, 1, 3, 1}), "input 0");
  refuses(with_x({1, 1, 3})->attr("pads", std::vector<int64_t>{0, 0, 0, 0}), "'pads'");
  refuses(op({1, 1, 2}, {1, 2}, shape, "lp")->input<float>({1, 1, 3}, {1, 2, 3}).input<float>({1, 1, 1}, {1}),
          "input 3: expected shape");
  refuses(op({1, 1, 2}, {1, 2}, shape, "max")->input<double>({1, 1, 3}, {1, 2, 3}), "expected one type");
}

// ---- ReluGradient ---------------------------------------------------------------------------------

TEST(ReluGradient, PassesWhereTheOutputIsPositive) {
  OpCase("ReluGradient", 1, kOurs)
      .input<float>({2, 2}, {0, 2, 1, 0})
      .input<float>({2, 2}, {1, 2, -3, 4})
      .run()
      .expect<float>(0, {2, 2}, {0, 2, -3, 0});
}

TEST(ReluGradient, RefusesWhatDoesNotFit) {
  const auto op = [] {
    auto made = std::make_unique<OpCase>("ReluGradient", 1, kOurs);
    made->input<float>({2}, {1, 2});
    return made;
  };
  refuses(op()->input<float>({4}, {1, 2, 3, 4}), "input 1: expected shape");
  refuses(op()->input<float>({1, 2}, {1, 2}), "input 1: expected shape");
  refuses(op()->input<double>({2}, {1, 2}), "expected one type");
  refuses(*op(), "inputs");
  refuses(OpCase("ReluGradient", 1, kOurs).input<int32_t>({1}, {1}).input<int32_t>({1}, {1}),
          "type int32 is not allowed");
}

// ---- UnaryGradient --------------------------------------------------------------------------------

// Slopes in double, from the formulas of the functions.
double slope(const std::string& function, double v) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  if (function == "Erf") return 2 / std::sqrt(M_PI) * std::exp(-v * v);
  if (function == "Gelu")
    return 0.5 * std::erfc(-v / std::sqrt(2.0)) + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
  if (function == "HardSwish") return v <= -3 ? 0 : v > 3 ? 1 : v / 3 + 0.5;
  if (function == "Swish") return sigmoid(v) * (1 + v * (1 - sigmoid(v)));
  if (function == "Sigmoid") return v * (1 - v);
  if (function == "Tanh") return 1 - v * v;
  const double k = std::sqrt(2 / M_PI), c = 0.044715, t = std::tanh(k * (v + c * v * v * v));
  return 0.5 * (1 + t + v * (1 - t * t) * k * (1 + 3 * c * v * v));
}

TEST(UnaryGradient, IsTheSlopeEverywhere) {
  for (const char* function : {"Erf", "Gelu", "GeluTanh", "HardSwish", "Swish", "Sigmoid", "Tanh"}) {
    SCOPED_TRACE(function);
    const bool of_result = slope(function, 1) == 0;  // of Sigmoid and Tanh, which end at 1
    std::vector<float> v, dy, expected;
    for (int i = -1000; i <= 1000; ++i) {
      v.push_back(static_cast<float>(i) * (of_result ? 0.001f : 0.02f));
      dy.push_back(i % 2 == 0 ? 1.0f : -0.5f);
      expected.push_back(static_cast<float>(dy.back() * slope(function, v.back())));
    }
    const auto n = static_cast<int64_t>(v.size());
    OpCase("UnaryGradient", 1, kOurs)
        .attr("function", function)
        .input<float>({n}, v)
        .input<float>({n}, dy)
        .run()
        .expect<float>(0, {n}, expected, 2e-6);
  }
}

TEST(UnaryGradient, IsFiniteAtInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& [function, above] :
       {std::pair("Erf", 0.0f), std::pair("Gelu", 1.0f), std::pair("GeluTanh", 1.0f),
        std::pair("HardSwish", 1.0f), std::pair("Swish", 1.0f)}) {
    SCOPED_TRACE(function);
    OpCase("UnaryGradient", 1, kOurs)
        .attr("function", function)
        .input<float>({2}, {-inf, inf})
        .input<float>({2}, {3, 3})
        .run()
        .expect<float>(0, {2}, {0, 3 * above});
  }
}

TEST(UnaryGradient, RefusesWhatDoesNotFit) {
  const auto op = [](const char* function) {
    auto made = std::make_unique<OpCase>("UnaryGradient", 1, kOurs);
    made->attr("function", function).input<float>({2}, {1, 2});
    return made;
  };
  refuses(op("Sine")->input<float>({2}, {1, 2}), "'function': expected Erf");
  refuses(op("Erf")->input<float>({4}, {1, 2, 3, 4}), "input 1: expected shape");
  refuses(op("Erf")->input<double>({2}, {1, 2}), "expected one type");
}

}  // namespace
}  // namespace plimsoll
