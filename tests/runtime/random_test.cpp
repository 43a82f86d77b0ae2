#include "runtime/session_support.h"

namespace plimsoll {
namespace {

std::string random_model(bool in_loop) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  if (!in_loop) {
    model.output(model.node("RandomNormalLike", {x})[0]);
    return model.bytes();
  }
  Edge* count = model.constant<int64_t>("count", {}, {3});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "RandomUniformLike", {x})[0]);
  model.output(model.node("Loop", {count, nullptr}, 1, {ModelBuilder::body("body", body)})[0]);
  return model.bytes();
}

std::vector<float> draw(Session& session) {
  const std::string name = session.GetOutputs()[0].name;
  return to_floats(session.Run({}, {"x"}, {floats({4}, {0, 0, 0, 0})}, {name})[0]);
}

Session seeded(const std::string& bytes, uint64_t seed) {
  SessionOptions options;
  options.random_seed = seed;
  return open(bytes, options);
}

TEST(Random, RunsDifferAndSessionsOfOneSeedDoNot) {
  const std::string bytes = random_model(false);
  Session a = seeded(bytes, 1), b = seeded(bytes, 1), c = seeded(bytes, 2), d = seeded(bytes, 0);
  const std::vector<float> first = draw(a), second = draw(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, draw(b));
  EXPECT_EQ(second, draw(b));
  EXPECT_NE(first, draw(c));
  EXPECT_NE(first, draw(d));
}

TEST(Random, EveryTurnOfABodyDrawsAnew) {
  const std::string bytes = random_model(true);
  Session session = seeded(bytes, 1);
  const std::vector<float> all = draw(session);
  ASSERT_EQ(all.size(), 12u);
  for (size_t i = 4; i < 12; ++i) EXPECT_NE(all[i], all[i - 4]);
}

}  // namespace
}  // namespace plimsoll
