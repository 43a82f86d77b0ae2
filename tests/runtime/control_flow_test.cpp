#include <gtest/gtest.h>

#include "plimsoll/session.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

Session open(const std::string& bytes) {
  SessionOptions options;
  options.poison = true;
  return Session(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
}

Value boolean(bool value) {
  Value v = Value::CreateTensor(ElementType::kBool, {});
  *v.GetTensorMutableData<bool>() = value;
  return v;
}

Value numbers(const std::vector<float>& values) {
  Value v = Value::CreateTensor(ElementType::kFloat, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), v.GetTensorMutableData<float>());
  return v;
}

}  // namespace

TEST(If, TakesTheBranchAndSeesOuterValues) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* condition = model.input("c", ElementType::kBool, {});
  Edge* doubled = model.node("Add", {x, x})[0];
  Graph* yes = model.new_body();
  yes->outputs.push_back(model.node_in(*yes, "Add", {doubled, x})[0]);
  Graph* no = model.new_body();
  no->outputs.push_back(model.node_in(*no, "Neg", {doubled})[0]);
  Edge* y = model.node("If", {condition}, 1,
                       {ModelBuilder::body("else_branch", no), ModelBuilder::body("then_branch", yes)})[0];
  model.output(model.node("Abs", {y})[0]);
  model.output(y);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string abs = session.GetOutputs()[0].name, raw = session.GetOutputs()[1].name;
  auto taken = session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(true)}, {raw});
  EXPECT_EQ(taken[0].GetTensorData<float>()[1], 6);
  auto other = session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(false)}, {raw, abs});
  EXPECT_EQ(other[0].GetTensorData<float>()[1], -4);
  EXPECT_EQ(other[1].GetTensorData<float>()[1], 4);
}

TEST(If, BranchesMayDifferInShape) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* condition = model.input("c", ElementType::kBool, {});
  Graph* yes = model.new_body();
  yes->outputs.push_back(model.node_in(*yes, "Neg", {x})[0]);
  Graph* no = model.new_body();
  no->outputs.push_back(model.node_in(*no, "Concat", {x, x}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  Edge* y = model.node("If", {condition}, 1,
                       {ModelBuilder::body("then_branch", yes), ModelBuilder::body("else_branch", no)})[0];
  model.output(model.node("Neg", {y})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string name = session.GetOutputs()[0].name;
  EXPECT_EQ(session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(true)}, {name})[0].GetShape()[0], 2);
  const auto longer = session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(false)}, {name});
  EXPECT_EQ(longer[0].GetShape()[0], 4);
  EXPECT_EQ(longer[0].GetTensorData<float>()[3], -2);
  EXPECT_GT(session.GetMemoryReport()[Account::kDynamic].peak_bytes, 0);
  EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].now_bytes, 0);
}

// sum = sum + x, `count` times; the sums are scanned out.
std::string loop_model(bool grows) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* sum = model.body_input(*body, "sum", ElementType::kFloat, {"m"});
  Edge* next = grows ? model.node_in(*body, "Concat", {sum, x}, 1, {ModelBuilder::integer("axis", 0)})[0]
                     : model.node_in(*body, "Add", {sum, x})[0];
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(next);
  if (!grows) body->outputs.push_back(model.node_in(*body, "Identity", {next})[0]);
  auto results = model.node("Loop", {count, nullptr, x}, grows ? 1 : 2, {ModelBuilder::body("body", body)});
  for (Edge* edge : results) model.output(edge);
  return model.bytes();
}

Value count_of(int64_t n) {
  Value v = Value::CreateTensor(ElementType::kInt64, {});
  *v.GetTensorMutableData<int64_t>() = n;
  return v;
}

TEST(Loop, CarriesStateAndScans) {
  const std::string bytes = loop_model(false);
  Session session = open(bytes);
  const std::string sum = session.GetOutputs()[0].name, scan = session.GetOutputs()[1].name;
  for (int64_t n : {0, 1, 2, 7}) {
    const auto result = session.Run({}, {"count", "x"}, {count_of(n), numbers({1, 10})}, {sum, scan});
    EXPECT_EQ(result[0].GetTensorData<float>()[1], static_cast<float>(10 * (n + 1)));
    EXPECT_EQ(result[1].GetShape()[0], n);
    if (n > 0) {
      EXPECT_EQ(result[1].GetTensorData<float>()[1], 20);
    }
  }
  EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].now_bytes, 0);
}

TEST(Loop, CarriedValuesMayGrow) {
  const std::string bytes = loop_model(true);
  Session session = open(bytes);
  const auto result =
      session.Run({}, {"count", "x"}, {count_of(5), numbers({1, 2, 3})}, {session.GetOutputs()[0].name});
  ASSERT_EQ(result[0].GetShape()[0], 18);
  EXPECT_EQ(result[0].GetTensorData<float>()[17], 3);
}

TEST(Loop, GrowthIsRefusedBeforeItCrossesTheLine) {
  const std::string bytes = loop_model(true);
  SessionOptions options;
  options.memory_limit_bytes = 2 << 20;
  Session session(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
  const std::string name = session.GetOutputs()[0].name;
  try {
    session.Run({}, {"count", "x"}, {count_of(1 << 20), numbers(std::vector<float>(1000, 1.0f))}, {name});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
  }
  EXPECT_LE(session.GetMemoryReport().peak_bytes, options.memory_limit_bytes);
  EXPECT_EQ(session.GetMemoryReport()[Account::kDynamic].now_bytes, 0);
  EXPECT_NO_THROW(session.Run({}, {"count", "x"}, {count_of(2), numbers({1})}, {name}));
}

// The first carried value's result is left out.
TEST(Loop, ResultsMayBeAbsent) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* a = model.body_input(*body, "a", ElementType::kFloat, {"n"});
  Edge* b = model.body_input(*body, "b", ElementType::kFloat, {"n"});
  body->outputs.push_back(go_on);
  body->outputs.push_back(b);  // inputs straight to outputs, and crosswise
  body->outputs.push_back(model.node_in(*body, "Add", {a, b})[0]);
  Edge* y = model.graph().add_edge("y");
  Edge* inputs[] = {count, nullptr, x, x};
  Edge* outputs[] = {nullptr, y};
  const Attribute attributes[] = {ModelBuilder::body("body", body)};
  model.graph().add_node("", "Loop", "loop", inputs, outputs, attributes);
  model.output(y);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const auto result = session.Run({}, {"count", "x"}, {count_of(5), numbers({1, 2})}, {"y"});
  EXPECT_EQ(result[0].GetTensorData<float>()[1], 26);  // 2, 4, 6, 10, 16, 26
}

// A body that has nothing to do: only its values pass through.
std::string idle_loop_model() {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.body_input(*body, "state", ElementType::kFloat, {"n"});
  body->outputs.push_back(go_on);
  body->outputs.push_back(state);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  return model.bytes();
}

TEST(Loop, StopsEvenWithoutWork) {
  const std::string bytes = idle_loop_model();
  Session session = open(bytes);
  RunOptions options;
  options.SetDeadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  try {
    session.Run(options, {"count", "x"}, {count_of(20'000'000), numbers({1})},
                {session.GetOutputs()[0].name});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
}

TEST(Loop, AnEmptyConditionIsAnError) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* count = model.constant<int64_t>("count", {}, {3});
  Edge* empty = model.constant<bool>("empty", {0}, {});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  model.body_input(*body, "cond", ElementType::kBool, {});
  body->outputs.push_back(empty);
  body->outputs.push_back(model.node_in(*body, "Neg", {x})[0]);
  model.output(model.node("Loop", {count, empty}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  EXPECT_THROW(
      {
        Session session = open(bytes);
        session.Run({}, {"x"}, {numbers({1})}, {session.GetOutputs()[0].name});
      },
      Error);
}

// If in If in Loop, each seeing values of the outermost graph, one of them through a view.
TEST(If, SeesThroughTwoLevels) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* condition = model.input("c", ElementType::kBool, {});
  Edge* made = model.node("Neg", {x})[0];
  Edge* seven = model.constant<float>("seven", {1}, {7});
  auto two = [&](Graph& where, Graph* yes, Graph* no) {
    return model.node_in(where, "If", {condition}, 1,
                         {ModelBuilder::body("then_branch", yes), ModelBuilder::body("else_branch", no)})[0];
  };
  Graph* outer_yes = model.new_body();
  Graph* outer_no = model.new_body();
  Graph* inner_yes = model.graph().arena().make<Graph>(*outer_yes);
  Graph* inner_no = model.graph().arena().make<Graph>(*outer_yes);
  Edge* axes = model.constant<int64_t>("axes", {1}, {0});
  inner_yes->outputs.push_back(
      model.node_in(*inner_yes, "Unsqueeze", {made, axes})[0]);  // a view from outside
  inner_no->outputs.push_back(model.node_in(*inner_no, "Unsqueeze", {seven, axes})[0]);
  outer_yes->outputs.push_back(two(*outer_yes, inner_yes, inner_no));
  outer_no->outputs.push_back(model.node_in(*outer_no, "Unsqueeze", {x, axes})[0]);
  Edge* y = two(model.graph(), outer_yes, outer_no);
  model.output(model.node("Add", {y, made})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string name = session.GetOutputs()[0].name;
  const auto taken = session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(true)}, {name});
  EXPECT_EQ(taken[0].GetTensorData<float>()[1], -4);
  const auto other = session.Run({}, {"x", "c"}, {numbers({1, 2}), boolean(false)}, {name});
  EXPECT_EQ(other[0].GetTensorData<float>()[1], 0);
}

TEST(NonZero, ShapeComesFromTheData) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* where = model.node("NonZero", {x})[0];
  model.output(where, ElementType::kInt64);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const auto result = session.Run({}, {"x"}, {numbers({0, 3, 0, 4})}, {session.GetOutputs()[0].name});
  ASSERT_EQ(result[0].GetShape(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(result[0].GetTensorData<int64_t>()[1], 3);
}

// A size of an outer value is known: what made the value is not needed, nor is what read its shape within.
TEST(If, AKnownSizeThatOnlyANestedBodyUses) {
  for (const auto level : {GraphOptimizationLevel::kDisableAll, GraphOptimizationLevel::kBasic,
                           GraphOptimizationLevel::kExtended, GraphOptimizationLevel::kAll}) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"3"});
    Edge* made = model.node("Relu", {x})[0];
    Edge* outer = model.input("c", ElementType::kBool, {});
    Edge* inner = model.input("d", ElementType::kBool, {});
    Graph* yes = model.new_body();
    Edge* shape = model.node_in(*yes, "Shape", {made})[0];
    Edge* size = model.node_in(*yes, "Cast", {shape}, 1, {ModelBuilder::integer("to", 1)})[0];
    std::vector<Attribute> branches;
    for (const char* op : {"Add", "Mul"}) {
      Graph* body = model.new_body();
      body->set_outer(*yes);
      body->outputs.push_back(model.node_in(*body, op, {x, size})[0]);
      branches.push_back(ModelBuilder::body(branches.empty() ? "then_branch" : "else_branch", body));
    }
    yes->outputs.push_back(model.node_in(*yes, "If", {inner}, 1, branches)[0]);
    Graph* no = model.new_body();
    no->outputs.push_back(model.node_in(*no, "Neg", {x})[0]);
    model.output(
        model.node("If", {outer}, 1,
                   {ModelBuilder::body("then_branch", yes), ModelBuilder::body("else_branch", no)})[0]);
    const std::string bytes = model.bytes();
    SessionOptions options;
    options.SetGraphOptimizationLevel(level).SetIntraOpNumThreads(1);
    Session session(Env(), bytes.data(), bytes.size(), options);
    const std::string name = session.GetOutputs()[0].name;
    const auto run = [&](bool c, bool d) {
      const auto result =
          session.Run({}, {"x", "c", "d"}, {numbers({1, 2, 4}), boolean(c), boolean(d)}, {name});
      return result[0].GetTensorData<float>()[2];
    };
    EXPECT_EQ(run(true, true), 7);
    EXPECT_EQ(run(true, false), 12);
    EXPECT_EQ(run(false, true), -4);
  }
}

// What no turn made has the shape that a turn would have given it, as far as that is known without one.
TEST(Loop, AScanOfNoTurnsKeepsItsShape) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n", "m"});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Neg", {x})[0]);
  Edge* scan = model.node("Loop", {count, nullptr}, 1, {ModelBuilder::body("body", body)})[0];
  Edge* axes = model.constant<int64_t>("axes", {1}, {0});
  Edge* one = model.node("Unsqueeze", {x, axes})[0];
  model.output(scan);
  model.output(model.node("Concat", {scan, one}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string scanned = session.GetOutputs()[0].name, joined = session.GetOutputs()[1].name;
  Value given = Value::CreateTensor(ElementType::kFloat, {2, 3});
  std::fill_n(given.GetTensorMutableData<float>(), 6, 1.0f);
  for (int64_t turns : {0, 2}) {
    const auto result = session.Run({}, {"count", "x"}, {count_of(turns), given}, {scanned, joined});
    EXPECT_EQ(result[0].GetShape(), (std::vector<int64_t>{turns, 2, 3}));
    EXPECT_EQ(result[1].GetShape(), (std::vector<int64_t>{turns + 1, 2, 3}));
  }
}

// What grows in a loop has not the size that it came with, even if that is known by name only.
TEST(Loop, AGrownSizeIsNotTheOneItHad) {
  for (const auto level : {GraphOptimizationLevel::kDisableAll, GraphOptimizationLevel::kAll}) {
    ModelBuilder model;
    Edge* count = model.input("count", ElementType::kInt64, {});
    Edge* found = model.node("NonZero", {model.input("x", ElementType::kFloat, {"n"})})[0];
    Graph* body = model.new_body();
    model.body_input(*body, "i", ElementType::kInt64, {});
    Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
    Edge* state = model.body_input(*body, "state", ElementType::kInt64, {"1", "m"});
    body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
    body->outputs.push_back(
        model.node_in(*body, "Concat", {state, found}, 1, {ModelBuilder::integer("axis", 1)})[0]);
    Edge* grown = model.node("Loop", {count, nullptr, found}, 1, {ModelBuilder::body("body", body)})[0];
    Edge* more = model.node("Sub", {model.node("Shape", {grown})[0], model.node("Shape", {found})[0]})[0];
    model.output(more, ElementType::kInt64);
    const std::string bytes = model.bytes();
    SessionOptions options;
    options.SetGraphOptimizationLevel(level).SetIntraOpNumThreads(1);
    Session session(Env(), bytes.data(), bytes.size(), options);
    const auto result =
        session.Run({}, {"count", "x"}, {count_of(3), numbers({1, 0, 2})}, {session.GetOutputs()[0].name});
    EXPECT_EQ(result[0].GetTensorData<int64_t>()[0], 0);
    EXPECT_EQ(result[0].GetTensorData<int64_t>()[1], 6);
  }
}

TEST(Loop, ACarriedValueMayChangeItsRank) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", ElementType::kFloat, {"n"});
  Edge* axes = model.constant<int64_t>("axes", {1}, {0});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.body_input(*body, "state", ElementType::kFloat, {"n"});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Unsqueeze", {state, axes})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string name = session.GetOutputs()[0].name;
  for (int64_t n : {0, 1, 3}) {
    const auto result = session.Run({}, {"count", "x"}, {count_of(n), numbers({1, 2})}, {name});
    ASSERT_EQ(result[0].GetShape().size(), static_cast<size_t>(n) + 1);
    EXPECT_EQ(result[0].GetTensorData<float>()[1], 2);
  }
}

// A mutant of a file crashed on this: what a loop carries must be given.
TEST(Loop, ACarriedValueThatIsMissingIsAnError) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.body_input(*body, "state", ElementType::kFloat, {"n"});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Neg", {state})[0]);
  model.output(model.node("Loop", {count, nullptr, nullptr}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  EXPECT_THROW(open(bytes), Error);
}

}  // namespace plimsoll
