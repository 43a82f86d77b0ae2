#include "runtime/session_support.h"

namespace plimsoll {

// The model loads, and some shapes do fit it: the caller is told that these do not.
TEST(Session, ShapesThatDoNotFitEachOtherAreTheCallersMistake) {
  ModelBuilder model;
  Edge* a = model.input("a", ElementType::kFloat, {"rows", "inner"});
  Edge* b = model.input("b", ElementType::kFloat, {"other", "columns"});
  model.output(model.node("MatMul", {a, b})[0]);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  EXPECT_NO_THROW(session.Prepare({{"a", {2, 3}}, {"b", {3, 4}}}));
  try {
    session.Prepare({{"a", {2, 3}}, {"b", {5, 4}}});
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_NE(std::string(error.what()).find("'b' [5, 4]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("MatMul"), std::string::npos) << error.what();
  }
}

// Kernels read whole elements: weights that lie askew in the caller's bytes are copied, and the copy is
// charged.
TEST(Session, WeightsOfAModelInMemoryAreAligned) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"2"});
  model.output(model.node("PRelu", {x, model.constant<float>("slope", {1}, {0.25f})})[0]);
  const std::string bytes = model.bytes();
  int copied = 0;
  for (size_t shift = 0; shift < alignof(float); ++shift) {
    const std::string shifted = std::string(shift, ' ') + bytes;
    Session session(Env(), shifted.data() + shift, bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
    if (session.GetMemoryReport()[Account::kWeights].now_bytes > 0) ++copied;
    const auto result = session.Run({}, {"x"}, {floats({2}, {-2, 2})}, {session.GetOutputs()[0].name});
    EXPECT_EQ(to_floats(result[0]), (std::vector<float>{-0.5f, 2}));
  }
  EXPECT_EQ(copied, 3);
}

TEST(Session, RejectsWrongInputs) {
  const std::string bytes = chain_model(1);
  Session session = open(bytes);
  const std::string output = session.GetOutputs()[0].name;
  const Value good = Value::CreateTensor(ElementType::kFloat, {1, 64});
  EXPECT_EQ(code_of([&] { session.Run({}, {}, {}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"z"}, {good}, {output}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Run({}, {"x"}, {good}, {"z"}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kInt64, {1, 64})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 65})}, {output});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code_of([&] { session.Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {64})}, {output}); }),
      ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW(session.Run({}, {"x"}, {good}, {output}));
}

TEST(Session, BindingRunsIntoTheCallersMemory) {
  const std::string bytes = chain_model(2);
  Session session = open(bytes);
  std::vector<float> in(128, 1.0f), out(128, 0.0f);
  IoBinding binding(session);
  binding.BindInput("x", Value::CreateTensor(in.data(), in.size(), {2, 64}));
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {2, 64}));
  session.Run({}, binding);
  EXPECT_NEAR(out[100], 1 / (1 + std::exp(-3.0)), 1e-6);
  binding.BindOutput(session.GetOutputs()[0].name, Value::CreateTensor(out.data(), out.size(), {1, 128}));
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
}

TEST(Session, RefusesTheBindingOfAnother) {
  const std::string bytes = chain_model(1);
  ModelBuilder none;
  none.output(none.constant<float>("c", {1}, {1}));
  const std::string empty = none.bytes();
  Session session = open(bytes), other = open(empty);
  IoBinding binding(other);
  EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
  IoBinding own(session);
  own.BindInput("x", Value::CreateTensor(ElementType::kFloat, {1, 64}));
  own.BindOutput(session.GetOutputs()[0].name);
  Session moved = std::move(session);
  EXPECT_NO_THROW(moved.Run({}, own));
}

// y = G(x) = F(x, slope 0.25) with F = LeakyRelu, then the Squeeze of opset 11, whose axes are an attribute.
std::string function_model() {
  ModelBuilder model(17);
  BumpArena& arena = model.graph().arena();
  const auto body = [&](const char* op, const char* domain, std::vector<Attribute> attributes) {
    Graph* graph = model.new_body();
    Edge* x = graph->add_edge("x");
    Edge* y = graph->add_edge("y");
    graph->inputs.push_back(x);
    graph->outputs.push_back(y);
    graph->add_node(domain, op, "inner", std::vector{x}, std::vector{y}, attributes);
    return graph;
  };
  const auto real = [](const char* name, float value, const char* reference) {
    Attribute a;
    a.name = name, a.type = AttributeType::kFloat, a.f = value, a.reference = reference;
    return a;
  };
  static const OpsetImport kNew[] = {{"", 17}, {"local", 1}}, kOld[] = {{"", 11}};
  static const int64_t kAxes[] = {1};
  std::span<Function> functions = arena.array<Function>(3);
  functions[0].name = "F", functions[0].body = body("LeakyRelu", "", {real("alpha", 0, "slope")});
  functions[1].name = "G", functions[1].body = body("F", "local", {real("slope", 0.25f, "")});
  functions[2].name = "S", functions[2].body = body("Squeeze", "", {ModelBuilder::integers("axes", kAxes)});
  static constexpr std::string_view kSlope[] = {"slope"};
  functions[0].attributes = kSlope;
  for (Function& f : functions) f.domain = "local", f.opsets = kNew;
  functions[2].opsets = kOld;
  model.graph().functions = functions;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "1", "4", "4"});
  // A convolution makes what follows it channels-last.
  Edge* w = model.constant<float>("w", {1, 1, 1, 1}, {2});
  Edge* value = model.node("Conv", {x, w})[0];
  for (const char* name : {"G", "S"}) {
    Edge* next = model.graph().add_edge(std::string("after") + name);
    model.graph().add_node("local", name, std::string("call") + name, std::vector{value}, std::vector{next});
    value = next;
  }
  model.output(value);
  return model.bytes();
}

TEST(Session, LocalFunctionsRunAtEveryLevel) {
  const std::string bytes = function_model();
  for (const auto level : {GraphOptimizationLevel::kDisableAll, GraphOptimizationLevel::kBasic,
                           GraphOptimizationLevel::kExtended, GraphOptimizationLevel::kAll}) {
    SessionOptions options;
    options.check_passes = true;
    Session session = open(bytes, options.SetGraphOptimizationLevel(level));
    std::vector<float> in(16, -2.0f);
    in[5] = 3.0f;
    const auto result = session.Run({}, {"x"}, {floats({1, 1, 4, 4}, in)}, {session.GetOutputs()[0].name});
    EXPECT_EQ(result[0].GetShape(), (std::vector<int64_t>{1, 4, 4}));
    EXPECT_EQ(result[0].GetTensorData<float>()[0], -1.0f);
    EXPECT_EQ(result[0].GetTensorData<float>()[5], 6.0f);
  }
}

TEST(Session, RefusesTheInstructionSetOfAnotherMachine) {
  EnvOptions ours, others;
  ours.instruction_set = Env::GetInstructionSet();
  others.instruction_set = ours.instruction_set == "neon" ? "sse4" : "neon";
  EXPECT_NO_THROW(const Env env(ours));
  try {
    const Env env(others);
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("not available on this machine"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(Env::GetInstructionSet(), ours.instruction_set);
}

// Weights are packed for the instruction set in use.
TEST(Session, KeepsTheInstructionSetWhileItLives) {
  const std::string set = Env::GetInstructionSet();
  if (set == "sse4" || set == "neon" || set == "scalar") GTEST_SKIP() << "no smaller set than " << set;
  EnvOptions smaller, same;
  smaller.instruction_set = "sse4";
  same.instruction_set = set;
  const std::string bytes = product_model();
  {
    Session session = open(bytes);
    try {
      const Env env(smaller);
      ADD_FAILURE() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("Session"), std::string::npos) << error.what();
    }
    EXPECT_EQ(Env::GetInstructionSet(), set);
    EXPECT_NO_THROW(const Env env(same));
    const auto result = session.Run({}, {"x"}, {floats({1, 64}, std::vector<float>(64, 0.0f))},
                                    {session.GetOutputs()[0].name});
    EXPECT_EQ(result[0].GetTensorData<float>()[7], 32.0f);
    Session moved = std::move(session);
    EXPECT_THROW(const Env env(smaller), Error);
  }
  EXPECT_NO_THROW(const Env env(smaller));
  EXPECT_EQ(Env::GetInstructionSet(), "sse4");
  EXPECT_NO_THROW(const Env env(same));
}

}  // namespace plimsoll
