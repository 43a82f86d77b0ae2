// Winograd's way in a session: the same answers, memory that is told, and none of it where it does not fit.
#include <cmath>

#include "plimsoll/model.h"
#include "runtime/session_support.h"
#include "runtime/written_model.h"

namespace plimsoll {
namespace {

constexpr int64_t kChannels = 32, kSize = 64;

void convolution(ModelBuilder& model, const std::string& size) {
  Edge* x = model.input("x", ElementType::kFloat, {"1", std::to_string(kChannels), size, size});
  std::vector<float> weights(kChannels * kChannels * 9);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i)) / 16;
  Edge* w = model.constant<float>("w", {kChannels, kChannels, 3, 3}, weights);
  static const std::vector<int64_t> pads = {1, 1, 1, 1};
  Edge* y = model.node("Conv", {x, w}, 1, {ModelBuilder::integers("pads", pads)})[0];
  model.output(model.node("Relu", {y})[0]);
}

SessionOptions one_thread(bool winograd, int64_t limit = 0) {
  SessionOptions options;
  options.SetIntraOpNumThreads(1).SetMemoryLimit(limit);
  if (!winograd) options.AddConfigEntry("plimsoll.disable_winograd", "1");
  return options;
}

std::vector<float> answer(Session& session) {
  std::vector<float> x(kChannels * kSize * kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i) * 0.7f);
  std::vector<Value> inputs;
  inputs.push_back(floats({1, kChannels, kSize, kSize}, x));
  return to_floats(session.Run({}, {"x"}, inputs, {session.GetOutputs()[0].name})[0]);
}

int64_t packed(Session& session) {
  return session.GetMemoryReport()[Account::kPacked].now_bytes;
}

TEST(WinogradSession, AnswersAsTheDefinitionDoes) {
  ModelBuilder model;
  convolution(model, std::to_string(kSize));
  const WrittenModel file(model);
  Session fast(Env(), file.path(), one_thread(true)), plain(Env(), file.path(), one_thread(false));
  EXPECT_GT(packed(fast), packed(plain));
  const std::vector<float> found = answer(fast), expected = answer(plain);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << "element " << i;
  EXPECT_EQ(fast.GetMemoryReport().peak_bytes,
            Model(Env(), file.path(), one_thread(true)).MakePlan().peak_bytes);
}

TEST(WinogradSession, IsLeftWhereItDoesNotFit) {
  ModelBuilder model;
  convolution(model, std::to_string(kSize));
  const WrittenModel file(model);
  const Plan plan = Model(Env(), file.path(), one_thread(true)).MakePlan();
  ASSERT_LT(plan.minimum_limit_bytes, plan.peak_bytes);
  Session wide(Env(), file.path(), one_thread(true, plan.peak_bytes));
  Session narrow(Env(), file.path(), one_thread(true, plan.minimum_limit_bytes));
  EXPECT_GT(packed(wide), packed(narrow));
  answer(narrow);
  EXPECT_LE(narrow.GetMemoryReport().peak_bytes, plan.minimum_limit_bytes);
  EXPECT_EQ(code_of([&] { Session(Env(), file.path(), one_thread(true, plan.minimum_limit_bytes - 1)); }),
            ErrorCode::kBudgetExceeded);
  // A plan under that limit is what the session does.
  EXPECT_LE(Model(Env(), file.path(), one_thread(true, plan.minimum_limit_bytes)).MakePlan().peak_bytes,
            plan.minimum_limit_bytes);
}

// The first run may bring any shape, so weights do not grow under a limit.
TEST(WinogradSession, IsLeftUnderALimitWhereShapesAreOpen) {
  ModelBuilder model;
  convolution(model, "size");
  const WrittenModel file(model);
  Session free(Env(), file.path(), one_thread(true)), limited(Env(), file.path(), one_thread(true, 64 << 20));
  EXPECT_GT(packed(free), packed(limited));
  EXPECT_EQ(answer(free).size(), answer(limited).size());
}

}  // namespace
}  // namespace plimsoll
