// Models as they come: what is unusual but means something runs, the rest is an Error that says why. ONNX
// Runtime 1.30 was asked about each; where the answer differs, it is noted.
#include <gmock/gmock.h>

#include "onnx/tiny_model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tiny::Proto;

Proto untyped(const std::string& name) {
  return Proto().text(tiny::value_field::kName, name);
}
Proto unranked(const std::string& name) {
  return tiny::value(
      name, Proto().message(tiny::type_field::kTensor, Proto().number(tiny::tensor_type_field::kElement, 1)));
}
const Proto kX = tiny::value("x", {2}), kY = tiny::value("y", {2});
const Proto kCondition = tiny::value("c", tiny::tensor_type({}, ElementType::kBool));
const Proto kRelu = tiny::node("Relu", {"x"}, {"y"});

Value x() {
  return floats({2}, {-1, 2});
}
Value condition(bool value) {
  Value result = Value::CreateTensor(ElementType::kBool, {});
  *static_cast<bool*>(result.GetMutableData()) = value;
  return result;
}

std::vector<float> run(const Proto& model, const std::vector<std::string>& names,
                       const std::vector<Value>& values, const std::string& output = "y") {
  Session session = open(model.bytes);
  return to_floats(session.Run(RunOptions(), names, values, {output})[0]);
}

}  // namespace

TEST(OddModels, AnInputMayHaveNoShape) {
  const Proto model = tiny::model(tiny::graph({kRelu}, {unranked("x")}, {unranked("y")}));
  EXPECT_THAT(run(model, {"x"}, {x()}), ElementsAre(0, 2));
  EXPECT_THAT(run(model, {"x"}, {floats({1, 1}, {3})}), ElementsAre(3));
}

// Such a model has no memory at all: what copies has nowhere to copy from.
TEST(OddModels, EveryValueMayBeEmpty) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"n", "3"});
  const auto one = [&](const char* op, std::vector<Attribute> attributes = {}) {
    model.output(model.node(op, {x}, 1, attributes)[0]);
  };
  one("Identity");
  one("Sum");
  one("ReduceSum", {ModelBuilder::integer("noop_with_empty_axes", 1)});
  one("Cast", {ModelBuilder::integer("to", static_cast<int64_t>(ElementType::kFloat))});
  const std::vector<Edge*> dropped = model.node("Dropout", {x}, 2);
  model.output(dropped[0]);
  model.output(dropped[1], ElementType::kBool);
  const std::string bytes = model.bytes();
  SessionOptions options;
  options.optimization_level = GraphOptimizationLevel::kDisableAll;
  Session session(Env(), bytes.data(), bytes.size(), options);
  for (const auto& output : session.GetOutputs())
    EXPECT_THAT(session.Run({}, {"x"}, {floats({0, 3}, {})}, {output.name})[0].GetShape(), ElementsAre(0, 3));
}

TEST(OddModels, AnInputNeedsAType) {
  const Proto model = tiny::model(tiny::graph({kRelu}, {untyped("x")}, {kY}));
  EXPECT_EQ(code_of([&] { open(model.bytes); }), ErrorCode::kInvalidModel);
}

// The shape that fits is not put in the place of one that does not.
TEST(OddModels, AShapeThatTheCallerGivesMustFit) {
  const Proto shape = tiny::value("s", tiny::tensor_type({1}, ElementType::kInt64));
  const Proto model = tiny::model(
      tiny::graph({tiny::node("Reshape", {"x", "s"}, {"y"})}, {kX, shape}, {tiny::value("y", {"n"})}));
  const auto reshaped = [&](int64_t size) {
    Value value = Value::CreateTensor(ElementType::kInt64, {1});
    *static_cast<int64_t*>(value.GetMutableData()) = size;
    return run(model, {"x", "s"}, {x(), value});
  };
  EXPECT_THAT(reshaped(2), ElementsAre(-1, 2));
  EXPECT_THAT(reshaped(-1), ElementsAre(-1, 2));
  for (int64_t size : {1, 3, 7})
    EXPECT_EQ(code_of([&] { reshaped(size); }), ErrorCode::kInvalidModel) << size;
}

TEST(OddModels, OfTwoKindsOfDataTheRawOneCounts) {
  const Proto add = tiny::node("Add", {"x", "w"}, {"y"});
  const Proto model =
      tiny::model(tiny::graph({add}, {kX}, {kY}, {tiny::floats("w", {5, 6}).real(4, 1).real(4, 2)}));
  EXPECT_THAT(run(model, {"x"}, {x()}), ElementsAre(4, 8));
  EXPECT_THAT(open(model.bytes).GetWarnings(), ElementsAre(HasSubstr("raw_data and float_data")));
  SessionOptions strict;
  strict.strict = true;
  EXPECT_EQ(code_of([&] { open(model.bytes, strict); }), ErrorCode::kInvalidModel);
}

// As in ONNX Runtime, which looks at no symbol; what is told for such shapes is what is taken.
TEST(OddModels, OneSymbolMayHaveSeveralSizes) {
  const Proto concat =
      tiny::node("Concat", {"x", "u"}, {"y"},
                 {tiny::attribute("axis", AttributeType::kInt).number(tiny::attribute_field::kInt, 0)});
  const Proto model = tiny::model(
      tiny::graph({concat}, {tiny::value("x", {"n"}), tiny::value("u", {"n"})}, {tiny::value("y", {"m"})}));
  EXPECT_THAT(run(model, {"x", "u"}, {x(), x()}), ElementsAre(-1, 2, -1, 2));
  Session session = open(model.bytes);
  EXPECT_THAT(session.GetWarnings(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    const Value y = session.Run(RunOptions(), {"x", "u"}, {x(), floats({1}, {3})}, {"y"})[0];
    EXPECT_THAT(to_floats(y), ElementsAre(-1, 2, 3));
  }
  EXPECT_THAT(session.GetWarnings(), ElementsAre(HasSubstr("dimensions of one name as different ones")));
  SessionOptions strict;
  strict.strict = true;
  EXPECT_EQ(code_of([&] {
              open(model.bytes, strict).Run(RunOptions(), {"x", "u"}, {x(), floats({1}, {3})}, {"y"});
            }),
            ErrorCode::kInvalidArgument);
}

// Exporters write an empty shape where they know none.
TEST(OddModels, AnInputDeclaredAsAScalarMayHaveARank) {
  const Proto model = tiny::model(tiny::graph(
      {tiny::node("Add", {"x", "u"}, {"y"})},
      {tiny::value("x", std::vector<tiny::DimSpec>{}), tiny::value("u", std::vector<tiny::DimSpec>{})},
      {unranked("y")}));
  EXPECT_THAT(run(model, {"x", "u"}, {floats({}, {1}), floats({}, {2})}), ElementsAre(3));
  Session session = open(model.bytes);
  const auto sum = [&](const Value& a, const Value& b) {
    return to_floats(session.Run(RunOptions(), {"x", "u"}, {a, b}, {"y"})[0]);
  };
  EXPECT_THAT(sum(x(), floats({}, {2})), ElementsAre(1, 4));
  EXPECT_THAT(sum(floats({}, {2}), floats({2, 1}, {5, 6})), ElementsAre(7, 8));
  EXPECT_THAT(sum(x(), floats({2, 1}, {5, 6})), ElementsAre(4, 7, 5, 8));
  EXPECT_THAT(sum(floats({}, {1}), floats({}, {2})), ElementsAre(3));
  IoBinding binding(session);
  binding.BindInput("x", x());
  binding.BindInput("u", floats({}, {2}));
  binding.BindOutput("y");
  session.Run(RunOptions(), binding);
  EXPECT_THAT(to_floats(binding.GetOutputValues()[0]), ElementsAre(1, 4));
}

// A plan for such shapes tells what they take, and they stay inside the line that it names.
TEST(OddModels, ContradictingShapesArePlannedLikeOthers) {
  const Proto model =
      tiny::model(tiny::graph({tiny::node("Add", {"x", "u"}, {"t"}), tiny::node("Relu", {"t"}, {"y"})},
                              {tiny::value("x", {"n"}), tiny::value("u", {"n"})}, {tiny::value("y", {"n"})}));
  const Shapes shapes = {{"x", {5000}}, {"u", {1}}};
  const auto given = [&](const std::vector<ValueInfo>&) { return shapes; };
  Env env;
  Session free(env, model.bytes.data(), model.bytes.size(), SessionOptions(), given);
  const int64_t least = free.Prepare(shapes).minimum_limit_bytes;
  SessionOptions limited;
  limited.memory_limit_bytes = least;
  Session session(env, model.bytes.data(), model.bytes.size(), limited, given);
  EXPECT_EQ(session
                .Run(RunOptions(), {"x", "u"},
                     {floats({5000}, std::vector<float>(5000, 1)), floats({1}, {3})}, {"y"})[0]
                .GetShape(),
            (std::vector<int64_t>{5000}));
  EXPECT_LE(session.GetMemoryReport().peak_bytes, least);
  limited.memory_limit_bytes = least - 1;
  EXPECT_EQ(code_of([&] { Session(env, model.bytes.data(), model.bytes.size(), limited, given); }),
            ErrorCode::kBudgetExceeded);
}

TEST(OddModels, WhatAFileSaysOfInnerValuesIsNotTrusted) {
  Proto graph = tiny::graph({tiny::node("Relu", {"x"}, {"a"}), tiny::node("Neg", {"a"}, {"y"})}, {kX}, {kY});
  constexpr uint32_t kValueInfo = 13;
  graph.message(kValueInfo, tiny::value("a", tiny::tensor_type({7, 8}, ElementType::kInt64)));
  EXPECT_THAT(run(tiny::model(graph), {"x"}, {x()}), ElementsAre(-0.0f, -2));
}

// ONNX Runtime refuses the wrong type, and warns of the wrong shape.
TEST(OddModels, WhatAFileSaysOfItsOutputsMayBeWrong) {
  const Proto shape = tiny::model(tiny::graph({kRelu}, {kX}, {tiny::value("y", {3, 4})}));
  EXPECT_THAT(run(shape, {"x"}, {x()}), ElementsAre(0, 2));
  EXPECT_THAT(open(shape.bytes).GetWarnings(),
              ElementsAre(HasSubstr("declared as float[3, 4], found float[2]")));
  SessionOptions strict;
  strict.strict = true;
  EXPECT_EQ(code_of([&] { open(shape.bytes, strict); }), ErrorCode::kInvalidModel);
  const Proto type = tiny::model(
      tiny::graph({kRelu}, {kX}, {tiny::value("y", tiny::tensor_type({2}, ElementType::kInt64))}));
  EXPECT_THAT(run(type, {"x"}, {x()}), ElementsAre(0, 2));
  EXPECT_THAT(open(type.bytes).GetWarnings(), ElementsAre(HasSubstr("declared as int64[2], found float[2]")));
}

TEST(OddModels, UnusedInputsMustBeGiven) {
  const Proto model = tiny::model(tiny::graph({kRelu}, {kX, tiny::value("u", {2})}, {kY}));
  EXPECT_THAT(run(model, {"x", "u"}, {x(), x()}), ElementsAre(0, 2));
  EXPECT_EQ(code_of([&] { run(model, {"x"}, {x()}); }), ErrorCode::kInvalidArgument);
}

TEST(OddModels, AnInputMayBeAnOutput) {
  const Proto model = tiny::model(tiny::graph({}, {kX}, {kX}));
  EXPECT_THAT(run(model, {"x"}, {x()}, "x"), ElementsAre(-1, 2));
  const Proto both = tiny::model(tiny::graph({kRelu}, {kX}, {kY, kX}));
  EXPECT_THAT(run(both, {"x"}, {x()}, "x"), ElementsAre(-1, 2));
  EXPECT_THAT(run(both, {"x"}, {x()}), ElementsAre(0, 2));
}

TEST(OddModels, AnInitializerMayBeAnOutput) {
  const Proto alone = tiny::model(tiny::graph({}, {}, {tiny::value("w")}, {tiny::floats("w", {1, 2})}));
  EXPECT_THAT(run(alone, {}, {}, "w"), ElementsAre(1, 2));
  const Proto beside =
      tiny::model(tiny::graph({kRelu}, {kX}, {kY, tiny::value("w")}, {tiny::floats("w", {1, 2})}));
  EXPECT_THAT(run(beside, {"x"}, {x()}, "w"), ElementsAre(1, 2));
}

TEST(OddModels, OneValueMayBeSeveralOutputs) {
  const Proto twice = tiny::model(tiny::graph({kRelu}, {kX}, {kY, kY}));
  EXPECT_THAT(run(twice, {"x"}, {x()}), ElementsAre(0, 2));
  const Proto named =
      tiny::model(tiny::graph({tiny::node("Relu", {"x"}, {"a"}), tiny::node("Identity", {"a"}, {"y"}),
                               tiny::node("Identity", {"a"}, {"z"})},
                              {kX}, {kY, tiny::value("z")}));
  Session session = open(named.bytes);
  const std::vector<Value> made = session.Run(RunOptions(), {"x"}, {x()}, {"z", "y"});
  EXPECT_THAT(to_floats(made[0]), ElementsAre(0, 2));
  EXPECT_THAT(to_floats(made[1]), ElementsAre(0, 2));
}

TEST(OddModels, NodesMayStandInAnyOrder) {
  const Proto model = tiny::model(
      tiny::graph({tiny::node("Relu", {"a"}, {"y"}), tiny::node("Neg", {"x"}, {"a"})}, {kX}, {kY}));
  EXPECT_THAT(run(model, {"x"}, {x()}), ElementsAre(1, 0));
}

TEST(OddModels, AModelMayBeAConstant) {
  const Proto value = tiny::attribute("value", AttributeType::kTensor)
                          .message(tiny::attribute_field::kTensor, tiny::floats("", {1, 2}));
  const Proto model = tiny::model(tiny::graph({tiny::node("Constant", {}, {"y"}, {value})}, {}, {kY}));
  EXPECT_THAT(run(model, {}, {}), ElementsAre(1, 2));
}

// ONNX Runtime refuses the first when it is run, the second when it is opened.
TEST(OddModels, AModelWithoutOutputsDoesNothing) {
  for (const Proto& graph : {tiny::graph({kRelu}, {kX}, {}), tiny::graph({}, {kX}, {})}) {
    const Proto model = tiny::model(graph);
    Session session = open(model.bytes);
    EXPECT_THAT(session.Run(RunOptions(), {"x"}, {x()}, {}), IsEmpty());
  }
}

TEST(OddModels, NamesHaveOneOrigin) {
  const Proto graphs[] = {
      tiny::graph({kRelu, tiny::node("Neg", {"x"}, {"y"})}, {kX}, {kY}),
      tiny::graph({kRelu}, {kX, kX}, {kY}),
      tiny::graph({tiny::node("Relu", {"x"}, {"w"}), tiny::node("Neg", {"w"}, {"y"})}, {kX}, {kY},
                  {tiny::floats("w", {1, 2})}),
      tiny::graph({kRelu}, {kX}, {kY, tiny::value("nobody")}),
      tiny::graph({tiny::node("Relu", {"nobody"}, {"y"})}, {kX}, {kY}),
      tiny::graph({tiny::node("Relu", {"y"}, {"z"}), tiny::node("Relu", {"z"}, {"y"})}, {kX}, {kY}),
  };
  for (const Proto& graph : graphs)
    EXPECT_EQ(code_of([&] { open(tiny::model(graph).bytes); }), ErrorCode::kInvalidModel);
}

TEST(OddModels, BodiesMayUseTheSameNames) {
  const auto branch = [](const char* op, const char* name) {
    return tiny::graph({tiny::node(op, {"x"}, {"inner"}), tiny::node("Identity", {"inner"}, {name})}, {},
                       {tiny::value(name)});
  };
  // In each other's, and as an output the name of the node's own. ONNX forbids the latter; ONNX Runtime runs
  // it.
  for (const char* name : {"t", "y"}) {
    const Proto model =
        tiny::model(tiny::graph({tiny::node("If", {"c"}, {"y"},
                                            {tiny::body("then_branch", branch("Neg", name)),
                                             tiny::body("else_branch", branch("Relu", name))})},
                                {kX, kCondition}, {kY}));
    EXPECT_THAT(run(model, {"x", "c"}, {x(), condition(true)}), ElementsAre(1, -2));
    EXPECT_THAT(run(model, {"x", "c"}, {x(), condition(false)}), ElementsAre(0, 2));
  }
}

// The inner one is meant inside. ONNX Runtime refuses this one.
TEST(OddModels, ABodysValueHidesOneOfTheGraphAround) {
  const auto branch = [](const char* op) {
    return tiny::graph({tiny::node(op, {"x"}, {"a"}), tiny::node("Identity", {"a"}, {"t"})}, {},
                       {tiny::value("t")});
  };
  const Proto model = tiny::model(tiny::graph(
      {tiny::node("Relu", {"x"}, {"a"}),
       tiny::node("If", {"c"}, {"b"},
                  {tiny::body("then_branch", branch("Neg")), tiny::body("else_branch", branch("Relu"))}),
       tiny::node("Add", {"a", "b"}, {"y"})},
      {kX, kCondition}, {kY}));
  EXPECT_THAT(run(model, {"x", "c"}, {x(), condition(true)}), ElementsAre(1, 0));
}

TEST(OddModels, ADefaultsShapeMayContradictItsInput) {
  const Proto model =
      tiny::model(tiny::graph({tiny::node("Mul", {"x", "w"}, {"y"})}, {kX, tiny::value("w", {7})}, {kY},
                              {tiny::floats("w", {3, 4})}));
  EXPECT_THAT(run(model, {"x"}, {x()}), ElementsAre(-3, 8));
  EXPECT_THAT(open(model.bytes).GetWarnings(), ElementsAre(HasSubstr("input 'w': expected shape [7]")));
}

}  // namespace plimsoll
