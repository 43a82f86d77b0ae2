#include "runtime/session_support.h"

namespace plimsoll {

// Sizes that no memory holds are an Error of the shape, not a wrong figure.
TEST(Session, RejectsShapesThatOverflow) {
  const std::string bytes = product_model();
  Session session = open(bytes, SessionOptions().SetMaxConcurrentRuns(1024));
  EXPECT_THROW(session.Prepare({{"x", {int64_t{1} << 50, 64}}}), Error);
  ModelBuilder model;
  model.output(model.node("Neg", {model.input("x", ElementType::kFloat, {"a", "b", "c"})})[0]);
  const std::string cube = model.bytes();
  Session other = open(cube);
  EXPECT_EQ(code_of([&] {
              other.Prepare({{"x", {0, int64_t{1} << 40, int64_t{1} << 40}}});
            }),
            ErrorCode::kInvalidArgument);
}

// Many inputs: none of them may be taken for another node's packed weight.
TEST(Session, ANodeMayHaveHundredsOfInputs) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "4"});
  Edge* w = model.constant<float>("w", {4, 4}, std::vector<float>(16, 1.0f));
  Edge* w2 = model.constant<float>("w2", {1200, 4}, std::vector<float>(4800, 1.0f));
  Edge* product = model.node("MatMul", {model.node("Neg", {x})[0], w})[0];
  Edge* wide =
      model.node("Concat", std::vector<Edge*>(300, product), 1, {ModelBuilder::integer("axis", 1)})[0];
  model.output(model.node("MatMul", {wide, w2})[0]);
  const std::string bytes = model.bytes();
  Session session =
      open(bytes, SessionOptions().SetGraphOptimizationLevel(GraphOptimizationLevel::kDisableAll));
  const auto y = session.Run({}, {"x"}, {floats({1, 4}, {1, 1, 1, 1})}, {session.GetOutputs()[0].name});
  EXPECT_EQ(to_floats(y[0])[0], -4800.0f);
}

// X has no rank, so that only the constants can be looked at before a run.
TEST(Lstm, WeightsOfAWrongRankAreAnError) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {});
  x->facts.type.ranked = false;
  Edge* w = model.constant<float>("w", {8}, std::vector<float>(8, 1.0f));
  Edge* r = model.constant<float>("r", {}, {1.0f});
  model.output(model.node("LSTM", {x, w, r}, 1, {ModelBuilder::integer("hidden_size", 2)})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(code_of([&] { open(bytes).Prepare({{"x", {3, 1, 2}}}); }), ErrorCode::kInvalidModel);
}

// A file may name our own fused forms, and leave the rank of X open: what packing reads is checked anyway.
TEST(FusedConv, WeightsAreCheckedBeforeTheyArePacked) {
  struct Case {
    std::vector<int64_t> weights, scale, bias;
    int64_t group;
    bool fits;
  };
  const Case cases[] = {
      {{64, 4, 1, 1}, {64}, {64}, 1, true},    {{64, 4, 1, 1}, {1}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {1}, 1, false},    {{64, 4, 1, 1}, {8, 8}, {64}, 1, false},
      {{64, 4}, {64}, {64}, 1, false},         {{64}, {64}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {64}, 63, false},  {{64, 4, 0, 1}, {64}, {64}, 1, false},
      {{64, 4, 1, 1}, {64}, {8, 8}, 1, false},
  };
  for (const Case& c : cases) {
    const auto filled_with_ones = [](const std::vector<int64_t>& dims) {
      size_t count = 1;
      for (int64_t d : dims) count *= static_cast<size_t>(d);
      return std::vector<float>(count, 1.0f);
    };
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {});
    x->facts.type.ranked = false;
    Edge* inputs[] = {x, model.constant<float>("w", c.weights, filled_with_ones(c.weights)),
                      model.constant<float>("b", c.bias, filled_with_ones(c.bias)), nullptr,
                      model.constant<float>("s", c.scale, filled_with_ones(c.scale))};
    Edge* outputs[] = {model.graph().add_edge("y")};
    const Attribute attributes[] = {ModelBuilder::integer("group", c.group)};
    model.graph().add_node("ai.plimsoll", "FusedConv", "fused", inputs, outputs, attributes);
    model.output(outputs[0]);
    const std::string bytes = model.bytes();
    auto load_and_run = [&] {
      open(bytes).Run({}, {"x"}, {Value::CreateTensor(ElementType::kFloat, {1, 4, 2, 2})}, {"y"});
    };
    const std::string label = to_string(c.weights) + to_string(c.scale) + to_string(c.bias);
    if (c.fits) {
      EXPECT_NO_THROW(load_and_run()) << label;
    } else {
      EXPECT_EQ(code_of([&] { open(bytes); }), ErrorCode::kInvalidModel) << label;
    }
  }
}

TEST(ScaleShift, OperandsOfOtherShapesAreErrors) {
  struct Case {
    std::vector<int64_t> scale, shift, addend;
    bool fits;
  };
  const std::vector<int64_t> x = {1, 64, 2, 2};
  const Case cases[] = {{{64}, {1}, x, true},      {{1}, {64}, x, true},
                        {{2}, {64}, x, false},     {{64}, {0}, x, false},
                        {{8, 8}, {64}, x, false},  {{64}, {64}, {1, 64, 1, 1}, false},
                        {{64}, {64}, {256}, false}};
  for (const Case& c : cases) {
    ModelBuilder model;
    std::vector<Edge*> inputs;
    for (const char* name : {"x", "scale", "shift", "addend"}) {
      inputs.push_back(model.input(name, ElementType::kFloat, {}));
      inputs.back()->facts.type.ranked = false;
    }
    Edge* outputs[] = {model.graph().add_edge("y")};
    model.graph().add_node("ai.plimsoll", "ScaleShift", "fused", inputs, outputs);
    model.output(outputs[0]);
    const std::string bytes = model.bytes();
    auto load_and_run = [&] {
      std::vector<Value> values;
      for (const auto* dims : {&x, &c.scale, &c.shift, &c.addend})
        values.push_back(Value::CreateTensor(ElementType::kFloat, *dims));
      open(bytes).Run({}, {"x", "scale", "shift", "addend"}, values, {"y"});
    };
    const std::string label = to_string(c.scale) + to_string(c.shift) + to_string(c.addend);
    if (c.fits) {
      EXPECT_NO_THROW(load_and_run()) << label;
    } else {
      EXPECT_EQ(code_of(load_and_run), ErrorCode::kInvalidArgument) << label;
    }
  }
}

TEST(ConvTranspose, WeightsAreCheckedBeforeTheyArePacked) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 8}, {4}, {4, 8, 0, 2}, {3, 8, 2, 2}}) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {});
    x->facts.type.ranked = false;
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    Edge* w = model.constant<float>("w", dims, std::vector<float>(count, 1.0f));
    model.output(model.node("ConvTranspose", {x, w}, 1, {ModelBuilder::integer("group", 2)})[0]);
    const std::string bytes = model.bytes();
    EXPECT_EQ(code_of([&] { open(bytes); }), ErrorCode::kInvalidModel) << to_string(dims);
  }
}

// A file may name our own fused forms: what the passes guarantee has to be checked there.
TEST(FusedMatMul, BiasAndAddendOfOtherShapesAreErrors) {
  const std::vector<int64_t> small = {1}, matrix = {2, 4096}, vector = {4096};
  for (const bool is_bias : {true, false}) {
    for (const bool fits : {true, false}) {
      ModelBuilder model;
      Edge* a = model.input("a", ElementType::kFloat, {"2", "8"});
      Edge* b = model.input("b", ElementType::kFloat, {"8", "4096"});
      const std::vector<int64_t>& dims = !fits ? small : is_bias ? vector : matrix;
      Edge* more = model.input("more", ElementType::kFloat, {});
      more->facts.type.ranked = false;
      Edge* y = model.graph().add_edge("y");
      Edge* inputs[] = {a, b, is_bias ? more : nullptr, is_bias ? nullptr : more};
      Edge* outputs[] = {y};
      model.graph().add_node("ai.plimsoll", "FusedMatMul", "fused", inputs, outputs);
      model.output(y);
      const std::string bytes = model.bytes();
      Session session = open(bytes);
      auto run = [&] {
        session.Run({}, {"a", "b", "more"},
                    {Value::CreateTensor(ElementType::kFloat, {2, 8}),
                     Value::CreateTensor(ElementType::kFloat, {8, 4096}),
                     Value::CreateTensor(ElementType::kFloat, dims)},
                    {"y"});
      };
      if (fits) {
        EXPECT_NO_THROW(run());
      } else {
        EXPECT_THROW(run(), Error);
      }
    }
  }
}

}  // namespace plimsoll
