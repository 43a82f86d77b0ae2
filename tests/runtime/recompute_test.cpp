// A limit that no order fits: nodes run again, and every output is the same to the bit.
#include "runtime/session_support.h"
#include "support/training_models.h"

namespace plimsoll {
namespace {

std::vector<Value> run_step(Session& session, int64_t rows, int64_t width) {
  std::vector<float> numbers(static_cast<size_t>(rows * width));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) / 97.0f - 0.5f;
  std::vector<std::string> names = session.GetOutputNames();
  std::vector<const char*> outputs;
  for (const std::string& name : names) outputs.push_back(name.c_str());
  const char* input = "x";
  const Value x = floats({rows, width}, numbers);
  return session.Run(RunOptions(), &input, &x, 1, outputs.data(), outputs.size());
}

void expect_same_bits(const std::vector<Value>& a, const std::vector<Value>& b, const std::string& which) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(to_floats(a[i]), to_floats(b[i])) << which << ", output " << i;
}

TEST(RecomputeRun, GradientsAreEqualToTheBitWithEveryPlan) {
  constexpr int64_t kRows = 256, kWidth = 64;
  const std::map<std::string, std::string> models = {{"chain", chain_step(16, kWidth)},
                                                     {"transformer", transformer_step(5, kWidth)},
                                                     {"with dropout", transformer_step(5, kWidth, true)}};
  for (const auto& [name, bytes] : models) {
    SessionOptions options;
    options.random_seed = 11;
    options.poison = true;
    Session plain = open(bytes, options);
    const Shapes shapes = {{"x", {kRows, kWidth}}};
    const Plan natural = plain.MakePlan(shapes);
    ASSERT_TRUE(natural.recomputed.empty());
    ASSERT_LT(natural.minimum_limit_bytes, natural.peak_bytes);
    const std::vector<Value> expected = run_step(plain, kRows, kWidth);
    size_t most_again = 0;
    for (int i = 0; i <= 4; ++i) {
      const int64_t limit =
          natural.minimum_limit_bytes + (natural.peak_bytes - natural.minimum_limit_bytes) * i / 4;
      SessionOptions limited = options;
      limited.memory_limit_bytes = limit;
      Session session = open(bytes, limited);
      const Plan plan = session.Prepare(shapes);
      EXPECT_LE(plan.peak_bytes, limit);
      most_again = std::max(most_again, plan.recomputed.size());
      expect_same_bits(run_step(session, kRows, kWidth), expected, name);
      EXPECT_LE(session.GetMemoryReport().peak_bytes, limit);
    }
    EXPECT_GT(most_again, 3u) << name;
  }
}

}  // namespace
}  // namespace plimsoll
