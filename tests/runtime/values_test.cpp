// Sequences, maps and optionals: as values of the API, and through a session.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "runtime/session_support.h"

namespace plimsoll {
namespace {

constexpr auto kFloat = ElementType::kFloat;
constexpr auto kSequence = ValueKind::kSequence, kOptional = ValueKind::kOptional;

Value integer(int64_t n) {
  Value v = Value::CreateTensor(ElementType::kInt64, {});
  *v.GetTensorMutableData<int64_t>() = n;
  return v;
}

std::vector<float> element(const Value& sequence, size_t i) {
  return to_floats(sequence.GetValue(i));
}

int64_t now_bytes(const Session& session) {
  return session.GetMemoryReport()[Account::kDynamic].now_bytes;
}

// Every way to run that must not matter.
std::vector<SessionOptions> truths() {
  std::vector<SessionOptions> all;
  for (const auto level : {GraphOptimizationLevel::kDisableAll, GraphOptimizationLevel::kAll}) {
    for (const auto placer : {Placer::kNaive, Placer::kGreedy}) {
      for (int threads : {1, 2}) {
        SessionOptions options;
        options.poison = true;
        options.check_passes = true;
        options.placer = placer;
        options.SetGraphOptimizationLevel(level).SetIntraOpNumThreads(threads);
        all.push_back(options);
      }
    }
  }
  return all;
}

}  // namespace

TEST(Value, ASequenceHasElementsOfOneType) {
  const Value sequence = Value::CreateSequence({floats({2}, {1, 2}), floats({}, {3})});
  EXPECT_TRUE(sequence.IsSequence());
  EXPECT_FALSE(sequence.IsTensor());
  EXPECT_EQ(sequence.GetCount(), 2u);
  EXPECT_EQ(sequence.GetValue(1).GetShape(), std::vector<int64_t>{});
  EXPECT_EQ(sequence.GetTypeInfo(), "sequence(float) of 2");
  EXPECT_EQ(code_of([&] { sequence.GetValue(2); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { sequence.GetShape(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] {
              Value::CreateSequence({floats({1}, {1}), integer(1)});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Value::CreateSequence({}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Value::CreateSequence({}, kFloat).GetCount(), 0u);
}

TEST(Value, AMapHasKeysAndValues) {
  const Value keys = Value::CreateStrings({"a", "b"}, {2});
  const Value map = Value::CreateMap(keys, floats({2}, {1, 2}));
  EXPECT_TRUE(map.IsMap());
  EXPECT_EQ(map.GetTypeInfo(), "map(string, float) of 2");
  EXPECT_EQ(map.GetValue(0).GetString(1), "b");
  EXPECT_EQ(code_of([&] { Value::CreateMap(keys, floats({1}, {1})); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { Value::CreateMap(floats({1}, {1}), floats({1}, {1})); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Value::CreateSequence({map, map}).GetTypeInfo(), "sequence(map(string, float)) of 2");
}

TEST(Value, AnOptionalMayHoldNothing) {
  EXPECT_FALSE(Value::CreateNone(kFloat).HasValue());
  EXPECT_TRUE(Value::CreateNone(kFloat));
  EXPECT_FALSE(Value().HasValue());
  EXPECT_TRUE(floats({1}, {1}).HasValue());
  EXPECT_EQ(Value::CreateNone(kFloat).GetTypeInfo(), "optional(float) without a value");
}

// What index and length are known of is tensors, planned like others, even with optimization off.
TEST(Sequences, KnownOnesArePlanned) {
  ModelBuilder model;
  Edge* x = model.input("x", kFloat, {"4", "300"});
  Edge* parts = model.node("SplitToSequence", {model.node("Relu", {x})[0]}, 1)[0];
  Edge* three = model.constant<int64_t>("three", {}, {3});
  Edge* minus_one = model.constant<int64_t>("minus_one", {}, {-1});
  Edge* shorter = model.node("SequenceErase", {parts, three})[0];
  Edge* inserted = model.node("SequenceInsert", {shorter, model.node("SequenceAt", {parts, minus_one})[0],
                                                 model.constant<int64_t>("zero", {}, {0})})[0];
  Edge* optional = model.node("Optional", {model.node("Identity", {inserted})[0]})[0];
  Edge* held = model.node("OptionalGetElement", {optional})[0];
  model.output(model.node("ConcatFromSequence", {held}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  model.output(model.node("SequenceLength", {held})[0], ElementType::kInt64);
  model.output(model.node("OptionalHasElement", {optional})[0], ElementType::kBool);
  const std::string bytes = model.bytes();
  std::vector<float> data(1200);
  std::iota(data.begin(), data.end(), 1.0f);
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    const Plan plan = session.Prepare({});
    EXPECT_FALSE(plan.depends_on_data);
    std::vector<std::string> names;
    for (const ValueInfo& info : session.GetOutputs()) names.push_back(info.name);
    const auto result = session.Run({}, {"x"}, {floats({4, 300}, data)}, names);
    EXPECT_EQ(to_floats(result[0])[0], 901);  // the last row came first
    EXPECT_EQ(to_floats(result[0])[300], 1);
    EXPECT_EQ(*result[1].GetTensorData<int64_t>(), 4);
    EXPECT_TRUE(*result[2].GetTensorData<bool>());
    const MemoryReport report = session.GetMemoryReport();
    EXPECT_EQ(report[Account::kDynamic].peak_bytes, 0);
    EXPECT_EQ(report.peak_bytes, plan.peak_bytes);
  }
}

TEST(Sequences, GoInAndOut) {
  ModelBuilder model;
  Edge* sequence = model.list_input("s", kSequence, kFloat);
  Edge* x = model.input("x", kFloat, {"n"});
  Edge* at = model.input("at", ElementType::kInt64, {});
  model.list_output(model.node("SequenceInsert", {sequence, model.node("Neg", {x})[0], at})[0], kSequence,
                    kFloat);
  model.output(model.node("SequenceAt", {sequence, at})[0]);
  model.list_output(sequence, kSequence, kFloat);
  const std::string bytes = model.bytes();
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    EXPECT_EQ(session.GetInputs()[0].kind, kSequence);
    EXPECT_EQ(session.GetOutputs()[0].type_text, "sequence(float[...])");
    const Value given = Value::CreateSequence({floats({2}, {1, 2}), floats({1, 1}, {3})});
    IoBinding binding(session);
    binding.BindInput("s", given);
    binding.BindInput("x", floats({3}, {4, 5, 6}));
    binding.BindInput("at", integer(1));
    for (const ValueInfo& info : session.GetOutputs()) binding.BindOutput(info.name);
    for (int run = 0; run < 2; ++run) {
      session.Run({}, binding);
      const std::vector<Value> result = binding.GetOutputValues();
      ASSERT_EQ(result[0].GetCount(), 3u);
      EXPECT_EQ(element(result[0], 1), (std::vector<float>{-4, -5, -6}));
      EXPECT_EQ(element(result[0], 2), std::vector<float>{3});
      EXPECT_EQ(to_floats(result[1]), std::vector<float>{3});
      EXPECT_EQ(result[1].GetShape(), (std::vector<int64_t>{1, 1}));
      EXPECT_EQ(result[2].GetCount(), 2u);
    }
    EXPECT_TRUE(session.Prepare({{"x", {3}}}).depends_on_data);
    EXPECT_EQ(now_bytes(session), 0);
    binding.BindOutput(session.GetOutputs()[0].name, given);
    EXPECT_EQ(code_of([&] { session.Run({}, binding); }), ErrorCode::kInvalidArgument);
  }
}

TEST(Sequences, WhatDoesNotFitIsRefused) {
  ModelBuilder model;
  Edge* sequence = model.list_input("s", kSequence, kFloat);
  model.output(model.node("SequenceLength", {sequence})[0], ElementType::kInt64);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  const std::string name = session.GetOutputs()[0].name;
  const auto code = [&](const Value& value) {
    return code_of([&] { session.Run({}, {"s"}, {value}, {name}); });
  };
  EXPECT_EQ(code(floats({1}, {1})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Value::CreateSequence({integer(1)})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Value::CreateNone(kFloat)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(Value()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { session.Prepare({{"s", {1}}}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(*session.Run({}, {"s"}, {Value::CreateSequence({}, kFloat)}, {name})[0].GetTensorData<int64_t>(),
            0);
}

TEST(Maps, PassThroughSequences) {
  ModelBuilder model;
  Edge* maps = model.list_input("m", kSequence, kFloat, ElementType::kString);
  model.list_output(model.node("Identity", {maps})[0], kSequence, kFloat, ElementType::kString);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  EXPECT_EQ(session.GetInputs()[0].type_text, "sequence(map(string, float[...]))");
  const Value one = Value::CreateMap(Value::CreateStrings({"a", "bc"}, {2}), floats({2}, {1, 2}));
  const std::vector<Value> result =
      session.Run({}, {"m"}, {Value::CreateSequence({one, one})}, {session.GetOutputs()[0].name});
  ASSERT_EQ(result[0].GetCount(), 2u);
  EXPECT_EQ(result[0].GetValue(1).GetValue(0).GetString(1), "bc");
  EXPECT_EQ(element(result[0].GetValue(1), 1), (std::vector<float>{1, 2}));
}

// seq = insert(seq, x * i) while i < count
std::string growing_model(bool from_optional) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", kFloat, {"n"});
  Edge* start =
      from_optional ? model.list_input("start", kOptional, kFloat) : model.node("SequenceEmpty", {})[0];
  if (from_optional) {
    // Optionals of tensors are not carried here: what it holds is the first element, if it holds any.
    Graph* yes = model.new_body();
    Edge* first = model.node_in(*yes, "OptionalGetElement", {start})[0];
    yes->outputs.push_back(model.node_in(*yes, "SequenceConstruct", {first})[0]);
    Graph* no = model.new_body();
    no->outputs.push_back(model.node_in(*no, "SequenceEmpty", {})[0]);
    start = model.node("If", {model.node("OptionalHasElement", {start})[0]}, 1,
                       {ModelBuilder::body("then_branch", yes), ModelBuilder::body("else_branch", no)})[0];
  }
  Graph* body = model.new_body();
  Edge* i = model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.list_body_input(*body, "state", kSequence, kFloat);
  Edge* factor = model.node_in(*body, "Cast", {i}, 1, {ModelBuilder::integer("to", 1)})[0];
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(
      model.node_in(*body, "SequenceInsert", {state, model.node_in(*body, "Mul", {x, factor})[0]})[0]);
  Edge* grown = model.node("Loop", {count, nullptr, start}, 1, {ModelBuilder::body("body", body)})[0];
  model.list_output(grown, kSequence, kFloat);
  return model.bytes();
}

TEST(Loop, CarriesASequenceThatGrows) {
  const std::string bytes = growing_model(false);
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    const std::string name = session.GetOutputs()[0].name;
    for (int64_t n : {0, 1, 5}) {
      const auto result = session.Run({}, {"count", "x"}, {integer(n), floats({2}, {1, 10})}, {name});
      ASSERT_EQ(result[0].GetCount(), static_cast<size_t>(n));
      for (size_t i = 0; i < result[0].GetCount(); ++i) {
        EXPECT_EQ(element(result[0], i)[1], 10 * static_cast<float>(i));
      }
    }
    EXPECT_EQ(now_bytes(session), 0);
  }
}

// Sequences share their elements: a hundred tensors of 40 kB take a hundred times that, not five thousand.
TEST(Loop, AGrowingSequenceCopiesNoElements) {
  const std::string bytes = growing_model(false);
  Session session = open(bytes);
  const Value x = floats({10000}, std::vector<float>(10000, 1));
  session.Run({}, {"count", "x"}, {integer(100), x}, {session.GetOutputs()[0].name});
  const int64_t peak = session.GetMemoryReport()[Account::kDynamic].peak_bytes;
  EXPECT_GE(peak, 100 * 40'000);
  EXPECT_LT(peak, 105 * 45'000);
}

TEST(Loop, AGrowingSequenceIsRefusedBeforeItCrossesTheLine) {
  const std::string bytes = growing_model(false);
  SessionOptions options;
  options.memory_limit_bytes = 2 << 20;
  Session session = open(bytes, options);
  const std::string name = session.GetOutputs()[0].name;
  const Value x = floats({1000}, std::vector<float>(1000, 1));
  EXPECT_EQ(code_of([&] {
              session.Run({}, {"count", "x"}, {integer(1 << 20), x}, {name});
            }),
            ErrorCode::kBudgetExceeded);
  EXPECT_LE(session.GetMemoryReport().peak_bytes, options.memory_limit_bytes);
  EXPECT_EQ(now_bytes(session), 0);
  EXPECT_NO_THROW(session.Run({}, {"count", "x"}, {integer(2), x}, {name}));
}

TEST(Optional, AnInputMayBeLeftOut) {
  const std::string bytes = growing_model(true);
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    const std::string name = session.GetOutputs()[0].name;
    const Value x = floats({1}, {1});
    EXPECT_EQ(session.Run({}, {"count", "x"}, {integer(2), x}, {name})[0].GetCount(), 2u);
    const auto longer =
        session.Run({}, {"count", "x", "start"}, {integer(2), x, floats({2}, {7, 8})}, {name});
    ASSERT_EQ(longer[0].GetCount(), 3u);
    EXPECT_EQ(element(longer[0], 0), (std::vector<float>{7, 8}));
    EXPECT_EQ(now_bytes(session), 0);
  }
}

// A loop without a count whose condition never ends it.
TEST(Loop, AnInfiniteOneEndsAtItsDeadline) {
  ModelBuilder model;
  Edge* x = model.input("x", kFloat, {"n"});
  Edge* truth = model.constant<bool>("truth", {}, {true});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* state = model.list_body_input(*body, "state", kSequence, kFloat);
  Edge* shorter = model.node_in(*body, "SequenceErase", {state})[0];
  body->outputs.push_back(model.node_in(*body, "Identity", {truth})[0]);
  body->outputs.push_back(model.node_in(*body, "SequenceInsert", {shorter, x})[0]);
  Edge* start = model.node("SequenceConstruct", {x, x})[0];
  model.list_output(model.node("Loop", {nullptr, truth, start}, 1, {ModelBuilder::body("body", body)})[0],
                    kSequence, kFloat);
  const std::string bytes = model.bytes();
  Session session = open(bytes);
  RunOptions options;
  options.SetDeadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(30));
  EXPECT_EQ(code_of([&] { session.Run(options, {"x"}, {floats({1}, {1})}, {session.GetOutputs()[0].name}); }),
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(now_bytes(session), 0);
}

// A loop in a loop: the inner one empties what the outer one carries into sums, seeing values of both.
TEST(Loop, NestedLoopsSeeTheSequencesAroundThem) {
  ModelBuilder model;
  Edge* sequence = model.list_input("s", kSequence, kFloat);
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", kFloat, {"n"});
  Graph* outer = model.new_body();
  model.body_input(*outer, "i", ElementType::kInt64, {});
  Edge* outer_go = model.body_input(*outer, "go", ElementType::kBool, {});
  Edge* outer_sum = model.body_input(*outer, "sum", kFloat, {"n"});
  Graph* inner = model.graph().arena().make<Graph>(*outer);
  Edge* j = model.body_input(*inner, "j", ElementType::kInt64, {});
  Edge* inner_go = model.body_input(*inner, "inner_go", ElementType::kBool, {});
  Edge* inner_sum = model.body_input(*inner, "inner_sum", kFloat, {"n"});
  Edge* one = model.node_in(*inner, "SequenceAt", {sequence, j})[0];
  inner->outputs.push_back(model.node_in(*inner, "Identity", {inner_go})[0]);
  inner->outputs.push_back(model.node_in(*inner, "Add", {inner_sum, one})[0]);
  Edge* length = model.node_in(*outer, "SequenceLength", {sequence})[0];
  outer->outputs.push_back(model.node_in(*outer, "Identity", {outer_go})[0]);
  outer->outputs.push_back(
      model.node_in(*outer, "Loop", {length, nullptr, outer_sum}, 1, {ModelBuilder::body("body", inner)})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", outer)})[0]);
  const std::string bytes = model.bytes();
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    const Value given = Value::CreateSequence({floats({1}, {1}), floats({2}, {10, 20})});
    const auto result = session.Run({}, {"s", "count", "x"}, {given, integer(3), floats({2}, {0, 0})},
                                    {session.GetOutputs()[0].name});
    EXPECT_EQ(to_floats(result[0]), (std::vector<float>{33, 63}));
    EXPECT_EQ(now_bytes(session), 0);
  }
}

// What a loop carries may begin as an optional and go on as what it holds. Without a turn nobody made it
// that.
TEST(Loop, AnOptionalThatNoTurnFilled) {
  ModelBuilder model;
  Edge* count = model.input("count", ElementType::kInt64, {});
  Edge* x = model.input("x", kFloat, {"2"});
  Edge* start = model.list_input("start", kOptional, kFloat);
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  model.list_body_input(*body, "state", kOptional, kFloat);
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Neg", {x})[0]);
  Edge* state = model.node("Loop", {count, nullptr, start}, 1, {ModelBuilder::body("body", body)})[0];
  model.output(model.node("Abs", {state})[0]);
  const std::string bytes = model.bytes();
  for (const SessionOptions& options : truths()) {
    Session session(Env(), bytes.data(), bytes.size(), options);
    const std::string name = session.GetOutputs()[0].name;
    const auto run = [&](int64_t n) {
      return session.Run({}, {"count", "x"}, {integer(n), floats({2}, {1, 2})}, {name})[0];
    };
    EXPECT_EQ(to_floats(run(1)), (std::vector<float>{1, 2}));
    EXPECT_EQ(code_of([&] { run(0); }), ErrorCode::kInvalidArgument);
    EXPECT_EQ(now_bytes(session), 0);
  }
}

}  // namespace plimsoll
