// Memory that two values share: results must be those of a run in which nothing is shared.
#include <gtest/gtest.h>

#include "plimsoll/session.h"
#include "support/model_builder.h"

namespace plimsoll {
namespace {

std::vector<float> run(const std::string& bytes, const std::vector<int64_t>& shape, bool share) {
  SessionOptions options;
  options.poison = true;
  options.placer = share ? Placer::kGreedy : Placer::kNaive;
  Session session(Env(), bytes.data(), bytes.size(), options.SetIntraOpNumThreads(1));
  Value x = Value::CreateTensor(ElementType::kFloat, shape);
  for (size_t i = 0; i < x.GetElementCount(); ++i)
    x.GetTensorMutableData<float>()[i] = static_cast<float>(i % 13) * 0.1f - 0.5f;
  const Value y = session.Run({}, {"x"}, {x}, {session.GetOutputs()[0].name})[0];
  const auto* data = y.GetTensorData<float>();
  return {data, data + y.GetElementCount()};
}

std::vector<float> pattern(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7) * 0.05f - 0.1f;
  return values;
}

}  // namespace

// y = e W + e: the product may not be written over the operand that it still reads.
TEST(Aliasing, ResidualThatIsTheProductsOperand) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "200"});
  Edge* w = model.constant<float>("w", {200, 200}, pattern(200 * 200));
  Edge* e = model.node("Exp", {x})[0];
  model.output(model.node("Add", {model.node("MatMul", {e, w})[0], e})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(run(bytes, {9, 200}, true), run(bytes, {9, 200}, false));
}

TEST(Aliasing, ResidualThatIsTheConvolutionsOperand) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", "24", "10", "10"});
  Edge* w = model.constant<float>("w", {24, 24, 3, 3}, pattern(24 * 24 * 9));
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  Edge* e = model.node("Exp", {x})[0];
  Edge* product = model.node("Conv", {e, w}, 1, {ModelBuilder::integers("pads", pads)})[0];
  model.output(model.node("Add", {product, e})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(run(bytes, {2, 24, 10, 10}, true), run(bytes, {2, 24, 10, 10}, false));
}

// What is scattered is also what it is scattered into.
TEST(Aliasing, UpdatesThatAreTheData) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"3"});
  Edge* indices = model.constant<int64_t>("indices", {3}, {1, 2, 0});
  Edge* e = model.node("Exp", {x})[0];
  model.output(model.node("ScatterElements", {e, indices, e}, 1, {ModelBuilder::integer("axis", 0)})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(run(bytes, {3}, true), run(bytes, {3}, false));
}

TEST(Aliasing, UpdatesOfRowsThatAreTheData) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"3", "2"});
  Edge* indices = model.constant<int64_t>("indices", {3, 1}, {1, 2, 0});
  Edge* e = model.node("Exp", {x})[0];
  model.output(model.node("ScatterND", {e, indices, e})[0]);
  const std::string bytes = model.bytes();
  EXPECT_EQ(run(bytes, {3, 2}, true), run(bytes, {3, 2}, false));
}

// All there is in the arena is a slice of no bytes: it has no address to poison. The undefined sanitizer sees
// it.
TEST(Aliasing, NothingIsPoisonedWhereNothingIs) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"2", "3"});
  Edge* zero = model.constant<int64_t>("zero", {1}, {0});
  Edge* axis = model.constant<int64_t>("axis", {1}, {1});
  Edge* empty = model.node("Slice", {x, zero, zero, axis})[0];
  Edge* joined = model.node("Concat", {empty, x}, 1, {ModelBuilder::integer("axis", 1)})[0];
  model.output(model.node("Abs", {joined})[0]);
  EXPECT_EQ(run(model.bytes(), {2, 3}, true).size(), 6u);
}

// Outputs twice, outputs that are inputs, constants, views of inputs and of one another; no step at all.
TEST(Aliasing, OutputsOfEveryKind) {
  for (const bool with_step : {false, true}) {
    ModelBuilder model;
    Edge* x = model.input("x", ElementType::kFloat, {"n", "2"});
    Edge* c = model.constant<float>("c", {2}, {7, 8});
    Edge* flat = model.constant<int64_t>("flat", {1}, {-1});
    Edge* view = model.node("Reshape", {x, flat})[0];
    Edge* made = with_step ? model.node("Neg", {x})[0] : x;
    Edge* made_view = model.node("Reshape", {made, flat})[0];
    for (Edge* edge : {x, c, view, made_view, made, made, c, x}) model.output(edge);
    const std::string bytes = model.bytes();
    SessionOptions options;
    options.poison = true;
    Session session(Env(), bytes.data(), bytes.size(), options);
    Value input = Value::CreateTensor(ElementType::kFloat, {2, 2});
    for (int i = 0; i < 4; ++i) input.GetTensorMutableData<float>()[i] = static_cast<float>(i + 1);
    IoBinding binding(session);
    binding.BindInput("x", input);
    for (const ValueInfo& info : session.GetOutputs()) binding.BindOutput(info.name);
    session.Run({}, binding);
    const float made_last = with_step ? -4 : 4;
    const float expected[] = {4, 8, 4, made_last, made_last, made_last, 8, 4};
    const std::vector<Value> values = binding.GetOutputValues();
    ASSERT_EQ(values.size(), std::size(expected));
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i].GetTensorData<float>()[values[i].GetElementCount() - 1], expected[i]) << i;
  }
}

}  // namespace plimsoll
