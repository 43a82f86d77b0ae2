// Strassen's way in a session: the same answers, scratch that is told, and none of it where it does not fit.
#include <cmath>

#include "plimsoll/model.h"
#include "runtime/session_support.h"
#include "runtime/written_model.h"

namespace plimsoll {
namespace {

constexpr int64_t kRows = 201, kDepth = 384, kColumns = 512;

void product(ModelBuilder& model, const std::string& rows) {
  Edge* x = model.input("x", ElementType::kFloat, {rows, std::to_string(kDepth)});
  std::vector<float> weights(kDepth * kColumns);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i)) / 16;
  Edge* w = model.constant<float>("w", {kDepth, kColumns}, weights);
  model.output(model.node("Relu", {model.node("MatMul", {x, w})[0]})[0]);
}

SessionOptions options_of(bool strassen, int threads = 1, int64_t limit = 0) {
  SessionOptions options;
  options.SetIntraOpNumThreads(threads).SetMemoryLimit(limit);
  if (!strassen) options.AddConfigEntry("plimsoll.disable_winograd", "1");
  return options;
}

std::vector<float> answer(Session& session) {
  std::vector<float> x(kRows * kDepth);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i) * 0.7f);
  std::vector<Value> inputs;
  inputs.push_back(floats({kRows, kDepth}, x));
  return to_floats(session.Run({}, {"x"}, inputs, {session.GetOutputs()[0].name})[0]);
}

TEST(StrassenSession, AnswersAsTheDefinitionDoesOnAnyNumberOfThreads) {
  ModelBuilder model;
  product(model, std::to_string(kRows));
  const WrittenModel file(model);
  Session fast(Env(), file.path(), options_of(true)), two(Env(), file.path(), options_of(true, 2)),
      plain(Env(), file.path(), options_of(false));
  const std::vector<float> found = answer(fast), expected = answer(plain);
  EXPECT_NE(found, expected);  // it is another way
  EXPECT_EQ(found, answer(two));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << "element " << i;
  EXPECT_EQ(fast.GetMemoryReport().peak_bytes,
            Model(Env(), file.path(), options_of(true)).MakePlan().peak_bytes);
}

TEST(StrassenSession, IsLeftWhereItDoesNotFit) {
  ModelBuilder model;
  product(model, std::to_string(kRows));
  const WrittenModel file(model);
  const Plan plan = Model(Env(), file.path(), options_of(true)).MakePlan();
  ASSERT_LT(plan.minimum_limit_bytes, plan.peak_bytes);
  Session narrow(Env(), file.path(), options_of(true, 1, plan.minimum_limit_bytes)),
      plain(Env(), file.path(), options_of(false));
  EXPECT_EQ(answer(narrow), answer(plain));
  EXPECT_LE(narrow.GetMemoryReport().peak_bytes, plan.minimum_limit_bytes);
}

// Any number of rows may come: the formula and the plan hold the most that it takes.
TEST(StrassenSession, TakesTheRowsThatCome) {
  ModelBuilder model;
  product(model, "rows");
  const WrittenModel file(model);
  Session fast(Env(), file.path(), options_of(true)), plain(Env(), file.path(), options_of(false));
  const std::vector<float> found = answer(fast), expected = answer(plain);
  EXPECT_NE(found, expected);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << "element " << i;
}

}  // namespace
}  // namespace plimsoll
