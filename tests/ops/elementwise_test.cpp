#include <cmath>
#include <limits>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

std::vector<Float16> halves(std::vector<float> values) {
  std::vector<Float16> result;
  for (float v : values) result.push_back(Float16(v));
  return result;
}
std::vector<BFloat16> brains(std::vector<float> values) {
  std::vector<BFloat16> result;
  for (float v : values) result.push_back(BFloat16(v));
  return result;
}

TEST(Arithmetic, BroadcastsBothWays) {
  OpCase("Add", 14)
      .input<float>({2, 1}, {1, 2})
      .input<float>({3}, {10, 20, 30})
      .run()
      .expect<float>(0, {2, 3}, {11, 21, 31, 12, 22, 32});
  OpCase("Sub", 14)
      .input<int64_t>({}, {5})
      .input<int64_t>({2}, {1, 7})
      .run()
      .expect<int64_t>(0, {2}, {4, -2});
  OpCase("Mul", 14).input<double>({2}, {1.5, 2}).input<double>({1}, {2}).run().expect<double>(0, {2}, {3, 4});
  OpCase("Div", 14)
      .input<Float16>({2}, halves({1, 3}))
      .input<Float16>({}, halves({2}))
      .run()
      .expect<Float16>(0, {2}, halves({0.5, 1.5}));
  OpCase("Add", 14)
      .input<BFloat16>({2}, brains({1, 3}))
      .input<BFloat16>({}, brains({2}))
      .run()
      .expect<BFloat16>(0, {2}, brains({3, 5}));
  OpCase("Add", 14).input<float>({2, 0}, {}).input<float>({1}, {1}).run().expect<float>(0, {2, 0}, {});
}

TEST(Arithmetic, IntegersWrap) {
  OpCase("Add", 14).input<int8_t>({1}, {127}).input<int8_t>({1}, {1}).run().expect<int8_t>(0, {1}, {-128});
  OpCase("Mul", 14)
      .input<uint16_t>({1}, {65535})
      .input<uint16_t>({1}, {65535})
      .run()
      .expect<uint16_t>(0, {1}, {1});
  const int64_t least = std::numeric_limits<int64_t>::min();
  OpCase("Sub", 14)
      .input<int64_t>({1}, {least})
      .input<int64_t>({1}, {1})
      .run()
      .expect<int64_t>(0, {1}, {std::numeric_limits<int64_t>::max()});
}

TEST(Arithmetic, IntegerDivisionIsSafe) {
  const int32_t least = std::numeric_limits<int32_t>::min();
  OpCase("Div", 14)
      .input<int32_t>({3}, {-7, 7, least})
      .input<int32_t>({3}, {2, -2, -1})
      .run()
      .expect<int32_t>(0, {3}, {-3, -3, least});
  OpCase("Mod", 13)
      .input<int32_t>({3}, {-7, 7, least})
      .input<int32_t>({3}, {3, -3, -1})
      .run()
      .expect<int32_t>(0, {3}, {2, -2, 0});
  OpCase("Mod", 13)
      .attr("fmod", int64_t{1})
      .input<float>({2}, {-7, 7.5})
      .input<float>({2}, {3, -3})
      .run()
      .expect<float>(0, {2}, {-1, 1.5});
  EXPECT_THROW(OpCase("Mod", 13).input<float>({1}, {1}).input<float>({1}, {1}).run(), Error);
  for (const char* op : {"Div", "Mod"}) {
    EXPECT_THROW(OpCase(op, 14).input<int64_t>({3}, {1, 2, 3}).input<int64_t>({3}, {1, 0, 2}).run(), Error);
    EXPECT_THROW(OpCase(op, 14).input<uint8_t>({3}, {1, 2, 3}).input<uint8_t>({}, {0}).run(), Error);
    OpCase(op, 14).input<int64_t>({0, 1}, {}).input<int64_t>({1}, {0}).run().expect<int64_t>(0, {0, 1}, {});
  }
}

TEST(Arithmetic, OldOpsetsPlaceTheSecondInputByAxis) {
  OpCase("Add", 6)
      .attr("broadcast", int64_t{1})
      .attr("axis", int64_t{0})
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<float>({2}, {10, 20})
      .run()
      .expect<float>(0, {2, 3}, {11, 12, 13, 24, 25, 26});
  OpCase("Mul", 6)
      .attr("broadcast", int64_t{1})
      .input<float>({2, 2}, {1, 2, 3, 4})
      .input<float>({2}, {10, 20})
      .run()
      .expect<float>(0, {2, 2}, {10, 40, 30, 80});
  OpCase("Add", 1)
      .attr("consumed_inputs", std::vector<int64_t>{0, 0})
      .input<float>({1}, {1})
      .input<float>({1}, {2})
      .run()
      .expect<float>(0, {1}, {3});
  EXPECT_THROW(OpCase("Add", 7).attr("axis", int64_t{0}).input<float>({1}, {1}).input<float>({1}, {2}).run(),
               Error);
}

TEST(Arithmetic, RejectsWhatCannotMeet) {
  EXPECT_THROW(OpCase("Add", 14).input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).run(), Error);
  EXPECT_THROW(OpCase("Add", 14).input<float>({1}, {1}).input<int32_t>({1}, {1}).run(), Error);
  EXPECT_THROW(OpCase("Add", 14).input<bool>({1}, {true}).input<bool>({1}, {true}).run(), Error);
}

TEST(Arithmetic, ThreadsDoNotChangeTheResult) {
  std::vector<float> a(300 * 333), b(333);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 977) * 0.37f;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) + 0.1f;
  std::vector<float> expected;
  for (size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] / b[i % 333]);
  for (int threads : {1, 2})
    OpCase("Div", 14)
        .threads(threads)
        .input<float>({300, 333}, a)
        .input<float>({333}, b)
        .run()
        .expect<float>(0, {300, 333}, expected, 0);
}

TEST(Unary, IsWhatTheStandardLibrarySays) {
  struct Function {
    const char* op;
    double (*value)(double);
  };
  const Function functions[] = {
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
  };
  for (const Function& f : functions) {
    std::vector<float> x, y;
    for (int i = 0; i < 37; ++i) {
      x.push_back(0.125f + 0.3f * static_cast<float>(i));
      y.push_back(static_cast<float>(f.value(double{x.back()})));
    }
    SCOPED_TRACE(f.op);
    OpCase(f.op, 13).input<float>({37}, x).run().expect<float>(0, {37}, y);
    OpCase(f.op, 13)
        .input<Float16>({1}, halves({2}))
        .run()
        .expect<Float16>(0, {1}, halves({static_cast<float>(f.value(2))}), 2e-3);
  }
}

TEST(Pow, MixesTypes) {
  OpCase("Pow", 15)
      .input<float>({3}, {1, 2, 3})
      .input<int64_t>({}, {3})
      .run()
      .expect<float>(0, {3}, {1, 8, 27});
  OpCase("Pow", 15).input<float>({2}, {1.5, -2}).input<float>({}, {2}).run().expect<float>(0, {2}, {2.25, 4});
  OpCase("Pow", 15)
      .input<float>({2}, {4, 2})
      .input<float>({2}, {0.5, -1})
      .run()
      .expect<float>(0, {2}, {2, 0.5});
  OpCase("Pow", 15)
      .input<int64_t>({4}, {3, -1, 2, 0})
      .input<int32_t>({4}, {39, -3, -1, -1})
      .run()
      .expect<int64_t>(0, {4}, {4052555153018976267, -1, 0, 0});
  OpCase("Pow", 15)
      .input<int32_t>({2}, {4, 10})
      .input<float>({2}, {0.5, 20})
      .run()
      .expect<int32_t>(0, {2}, {2, std::numeric_limits<int32_t>::max()});
}

TEST(MinMax, TakesAnyNumberOfInputs) {
  OpCase("Max", 13).input<float>({1}, {2}).run().expect<float>(0, {1}, {2});
  OpCase("Max", 13)
      .input<float>({1}, {2})
      .input<float>({1}, {3})
      .input<float>({2, 2}, {1, 5, 0, 9})
      .run()
      .expect<float>(0, {2, 2}, {3, 5, 3, 9});
  OpCase("Min", 13)
      .input<uint64_t>({2}, {2, 9})
      .input<uint64_t>({}, {3})
      .run()
      .expect<uint64_t>(0, {2}, {2, 3});
  OpCase("Min", 13)
      .input<Float16>({2}, halves({2, 9}))
      .input<Float16>({}, halves({3}))
      .run()
      .expect<Float16>(0, {2}, halves({2, 3}));
}

TEST(Comparison, GivesBools) {
  OpCase("Greater", 13)
      .input<float>({3}, {1, 2, NAN})
      .input<float>({}, {1.5})
      .run()
      .expect<bool>(0, {3}, {false, true, false});
  OpCase("LessOrEqual", 16)
      .input<int32_t>({3}, {1, 2, 3})
      .input<int32_t>({}, {2})
      .run()
      .expect<bool>(0, {3}, {true, true, false});
  OpCase("Less", 13)
      .input<uint8_t>({2}, {1, 200})
      .input<uint8_t>({}, {100})
      .run()
      .expect<bool>(0, {2}, {true, false});
  OpCase("GreaterOrEqual", 16)
      .input<double>({2}, {1, 2})
      .input<double>({}, {2})
      .run()
      .expect<bool>(0, {2}, {false, true});
  OpCase("Equal", 13)
      .input<bool>({2}, {true, false})
      .input<bool>({}, {true})
      .run()
      .expect<bool>(0, {2}, {true, false});
  OpCase("Equal", 19)
      .input<StringRef>({2}, {{"ab", 2}, {"c", 1}})
      .input<StringRef>({}, {{"c", 1}})
      .run()
      .expect<bool>(0, {2}, {false, true});
  OpCase("And", 7)
      .input<bool>({2, 1}, {true, false})
      .input<bool>({2}, {true, false})
      .run()
      .expect<bool>(0, {2, 2}, {true, false, false, false});
  OpCase("Or", 7)
      .input<bool>({2}, {true, false})
      .input<bool>({}, {false})
      .run()
      .expect<bool>(0, {2}, {true, false});
  OpCase("Xor", 7)
      .input<bool>({2}, {true, false})
      .input<bool>({}, {true})
      .run()
      .expect<bool>(0, {2}, {false, true});
  OpCase("Not", 1).input<bool>({2}, {true, false}).run().expect<bool>(0, {2}, {false, true});
  OpCase("IsNaN", 13).input<float>({2}, {NAN, 1}).run().expect<bool>(0, {2}, {true, false});
}

TEST(Where, ChoosesWithBroadcasting) {
  OpCase("Where", 16)
      .input<bool>({2, 1}, {true, false})
      .input<float>({2}, {1, 2})
      .input<float>({}, {9})
      .run()
      .expect<float>(0, {2, 2}, {1, 2, 9, 9});
  OpCase("Where", 16)
      .input<bool>({2}, {true, false})
      .input<StringRef>({}, {{"a", 1}})
      .input<StringRef>({}, {{"b", 1}})
      .run()
      .expect<StringRef>(0, {2}, {{"a", 1}, {"b", 1}});
  OpCase("Where", 16)
      .input<bool>({}, {true})
      .input<int64_t>({0}, {})
      .input<int64_t>({1}, {1})
      .run()
      .expect<int64_t>(0, {0}, {});
}

TEST(Unary, EveryTypeFamily) {
  OpCase("Relu", 14).input<float>({3}, {-1, 0, 2}).run().expect<float>(0, {3}, {0, 0, 2});
  OpCase("Relu", 14).input<int8_t>({3}, {-1, 0, 2}).run().expect<int8_t>(0, {3}, {0, 0, 2});
  OpCase("Relu", 5)
      .attr("consumed_inputs", std::vector<int64_t>{0})
      .input<float>({1}, {-1})
      .run()
      .expect<float>(0, {1}, {0});
  OpCase("Abs", 13)
      .input<int64_t>({2}, {std::numeric_limits<int64_t>::min(), -3})
      .run()
      .expect<int64_t>(0, {2}, {std::numeric_limits<int64_t>::min(), 3});
  OpCase("Abs", 13).input<uint8_t>({2}, {255, 3}).run().expect<uint8_t>(0, {2}, {255, 3});
  OpCase("Neg", 13).input<int32_t>({2}, {5, -3}).run().expect<int32_t>(0, {2}, {-5, 3});
  OpCase("Neg", 13).input<double>({2}, {5, -3}).run().expect<double>(0, {2}, {-5, 3});
  OpCase("Sign", 13).input<float>({3}, {-2, 0, 7}).run().expect<float>(0, {3}, {-1, 0, 1});
  OpCase("Sign", 13).input<int16_t>({3}, {-2, 0, 7}).run().expect<int16_t>(0, {3}, {-1, 0, 1});
  OpCase("Exp", 13)
      .input<Float16>({2}, halves({0, 1}))
      .run()
      .expect<Float16>(0, {2}, halves({1, 2.71828f}), 2e-3);
  OpCase("Tanh", 13)
      .input<BFloat16>({1}, brains({0.5}))
      .run()
      .expect<BFloat16>(0, {1}, brains({0.4621f}), 4e-3);
  OpCase("Sigmoid", 13)
      .input<double>({1}, {1})
      .run()
      .expect<double>(0, {1}, {1 / (1 + std::exp(-1.0))}, 1e-7);
  OpCase("Sqrt", 13).input<float>({0, 3}, {}).run().expect<float>(0, {0, 3}, {});
  OpCase("Round", 11).input<float>({4}, {0.5, 1.5, 2.5, -2.5}).run().expect<float>(0, {4}, {0, 2, 2, -2});
  OpCase("Sin", 7).input<float>({1}, {100000}).run().expect<float>(0, {1}, {std::sin(100000.0f)});
  OpCase("Cos", 7).input<double>({1}, {1}).run().expect<double>(0, {1}, {std::cos(1.0)});
  EXPECT_THROW(OpCase("Sigmoid", 13).input<int32_t>({1}, {1}).run(), Error);
}

TEST(Unary, Attributes) {
  OpCase("LeakyRelu", 16).attr("alpha", 0.5f).input<float>({2}, {-2, 2}).run().expect<float>(0, {2}, {-1, 2});
  OpCase("Elu", 6)
      .attr("alpha", 2.0f)
      .input<float>({2}, {-1, 2})
      .run()
      .expect<float>(0, {2}, {2 * std::expm1(-1.0f), 2});
  OpCase("Selu", 6).input<float>({2}, {-1, 2}).run().expect<float>(0, {2}, {-1.1113307f, 2.101402f});
  OpCase("HardSigmoid", 6).input<float>({3}, {-9, 1, 9}).run().expect<float>(0, {3}, {0, 0.7f, 1});
  OpCase("HardSwish", 14).input<float>({3}, {-9, 1, 9}).run().expect<float>(0, {3}, {0, 2.0f / 3, 9});
  // Near -3 all digits are right, though x / 6 and 1/2 nearly cancel; above 3 it is x itself.
  const float near = std::nextafterf(-3.0f, 0.0f), large = 3e38f;
  OpCase steep("HardSwish", 14);
  steep.input<float>({2}, {near, large}).run();
  const double expected = double{near} * (double{near} + 3) / 6;
  EXPECT_NEAR(steep.result().as<float>()[0], expected, 3e-7 * std::abs(expected));
  EXPECT_EQ(steep.result().as<float>()[1], large);
  OpCase("Gelu", 20).input<float>({2}, {-1, 1}).run().expect<float>(0, {2}, {-0.15865526f, 0.8413447f});
  OpCase("Gelu", 20)
      .attr("approximate", "tanh")
      .input<float>({2}, {-1, 1})
      .run()
      .expect<float>(0, {2}, {-0.15880801f, 0.841192f});
  EXPECT_THROW(OpCase("Gelu", 20).attr("approximate", "both").input<float>({1}, {1}).run(), Error);
  OpCase("Silu", 1, "ai.plimsoll").input<float>({1}, {1}).run().expect<float>(0, {1}, {0.7310586f});
  OpCase("PRelu", 16)
      .input<float>({1, 2, 2}, {-1, 1, -2, -4})
      .input<float>({2, 1}, {0.5, 2})
      .run()
      .expect<float>(0, {1, 2, 2}, {-0.5, 1, -4, -8});
  OpCase("PRelu", 6)
      .input<float>({1, 2, 2}, {-1, 1, -2, -4})
      .input<float>({2}, {0.5, 2})
      .run()
      .expect<float>(0, {1, 2, 2}, {-0.5, 1, -4, -8});
}

TEST(Clip, BoundsAreAttributesOrInputs) {
  OpCase("Clip", 6).attr("min", -1.0f).input<float>({3}, {-5, 0, 5}).run().expect<float>(0, {3}, {-1, 0, 5});
  OpCase("Clip", 13)
      .input<float>({3}, {-5, 0, 5})
      .absent()
      .input<float>({}, {2})
      .run()
      .expect<float>(0, {3}, {-5, 0, 2});
  OpCase("Clip", 13)
      .input<int8_t>({3}, {-5, 0, 5})
      .input<int8_t>({}, {-1})
      .run()
      .expect<int8_t>(0, {3}, {-1, 0, 5});
  OpCase("Clip", 13)
      .input<uint64_t>({2}, {1, 50})
      .input<uint64_t>({}, {2})
      .input<uint64_t>({}, {4})
      .run()
      .expect<uint64_t>(0, {2}, {2, 4});
  OpCase("Clip", 13)
      .input<Float16>({2}, halves({1, 50}))
      .input<Float16>({}, halves({2}))
      .run()
      .expect<Float16>(0, {2}, halves({2, 50}));
  EXPECT_THROW(OpCase("Clip", 13).input<float>({1}, {1}).input<float>({2}, {1, 2}).run(), Error);
}

}  // namespace
}  // namespace plimsoll
