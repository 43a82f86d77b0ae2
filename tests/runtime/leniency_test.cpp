// What ONNX forbids and exporters write all the same: a warning, or with `strict` an Error.
#include <gmock/gmock.h>

#include "onnx/loaded.h"
#include "onnx/tiny_model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tiny::Proto;

Proto integers_attribute(const std::string& name, const std::vector<int64_t>& values) {
  return tiny::attribute(name, AttributeType::kInts).packed(tiny::attribute_field::kInts, values);
}

SessionOptions strict() {
  SessionOptions options;
  options.strict = true;
  return options;
}

// Gives the warnings of a model that strictly is none.
std::vector<std::string> tolerated(const Proto& model) {
  const std::string& bytes = model.bytes;
  EXPECT_EQ(code_of([&] { open(bytes, strict()); }), ErrorCode::kInvalidModel);
  return open(bytes).GetWarnings();
}

TEST(Leniency, AMisspeltAttributeLeavesTheDefault) {
  const Proto alpha =
      tiny::attribute("alhpa", AttributeType::kFloat).real(tiny::attribute_field::kFloat, 0.5f);
  const Proto model = tiny::model(
      tiny::graph({tiny::node("LeakyRelu", {"x"}, {"y"}, {alpha})}, {tiny::value("x")}, {tiny::value("y")}));
  EXPECT_THAT(tolerated(model), ElementsAre(HasSubstr("unknown attribute 'alhpa'")));
  Session session = open(model.bytes);
  const Value y = session.Run(RunOptions(), {"x"}, {floats({2}, {-1, 1})}, {"y"})[0];
  EXPECT_THAT(to_floats(y), ElementsAre(-0.01f, 1));
}

TEST(Leniency, AnAttributeOfAnotherVersionIsAnError) {
  // Until opset 12 these were the axes; since then they are an input, and without it all axes are meant.
  const Proto model =
      tiny::model(tiny::graph({tiny::node("Squeeze", {"x"}, {"y"}, {integers_attribute("axes", {0})})},
                              {tiny::value("x", {1, 1, 2})}, {tiny::value("y")}));
  EXPECT_EQ(code_of([&] { open(model.bytes); }), ErrorCode::kInvalidModel);
}

TEST(Leniency, ManyWarningsAreCutShort) {
  std::vector<Proto> nodes;
  std::string last = "x";
  for (int i = 0; i < 300; ++i) {
    const std::string next = "v" + std::to_string(i);
    nodes.push_back(tiny::node("Relu", {last}, {next}, {integers_attribute("axis", {0})}));
    last = next;
  }
  const Proto model = tiny::model(tiny::graph(nodes, {tiny::value("x")}, {tiny::value(last)}));
  const std::vector<std::string> warnings = open(model.bytes).GetWarnings();
  ASSERT_EQ(warnings.size(), Graph::kMaxWarnings + 1);
  EXPECT_THAT(warnings.back(), HasSubstr("left out"));
}

TEST(Leniency, DomainsWithoutAnImportAreOfTheNewestVersion) {
  const auto model = [](const std::string& domain) {
    return tiny::model(tiny::graph({tiny::node("Thing", {"x"}, {"y"}, {}, domain)}, {tiny::value("x")},
                                   {tiny::value("y")}))
        .bytes;
  };
  for (const auto& [domain, version] : {std::pair("com.microsoft", 1), std::pair("ai.onnx.ml", 5)}) {
    Loaded loaded;
    loaded.read_bytes(model(domain));
    EXPECT_EQ(loaded.graph.nodes[0]->opset, version);
    EXPECT_EQ(loaded.graph.opset(domain), version) << "what is written has the import";
    ASSERT_EQ(loaded.graph.warnings.size(), 1u);
    EXPECT_THAT(std::string(loaded.graph.warnings[0]), HasSubstr("opset import for domain"));
    LoadOptions options;
    options.strict = true;
    Loaded refused;
    EXPECT_EQ(code_of([&] { refused.read_bytes(model(domain), options); }), ErrorCode::kInvalidModel);
  }
  Loaded unknown;
  EXPECT_EQ(code_of([&] { unknown.read_bytes(model("nobody.knows")); }), ErrorCode::kInvalidModel);
}

TEST(Leniency, AModelWithoutAnyImportIsNone) {
  const Proto graph = tiny::graph({tiny::node("Relu", {"x"}, {"y"})}, {tiny::value("x")}, {tiny::value("y")});
  const Proto model =
      Proto().number(tiny::model_field::kIrVersion, 8).message(tiny::model_field::kGraph, graph);
  EXPECT_EQ(code_of([&] { open(model.bytes); }), ErrorCode::kInvalidModel);
}

// Concatenates the iteration numbers: that works only if they are as declared, [1].
Proto loop_model(const std::vector<tiny::DimSpec>& iteration) {
  const Proto body = tiny::graph(
      {tiny::node("Identity", {"go"}, {"go_on"}),
       tiny::node("Concat", {"before", "i"}, {"after"},
                  {tiny::attribute("axis", AttributeType::kInt).number(tiny::attribute_field::kInt, 0)})},
      {tiny::value("i", tiny::tensor_type(iteration, ElementType::kInt64)),
       tiny::value("go", tiny::tensor_type({}, ElementType::kBool)),
       tiny::value("before", tiny::tensor_type({"n"}, ElementType::kInt64))},
      {tiny::value("go_on", tiny::tensor_type({}, ElementType::kBool)),
       tiny::value("after", tiny::tensor_type({"m"}, ElementType::kInt64))});
  return tiny::model(
      tiny::graph({tiny::node("Loop", {"count", "", "start"}, {"y"}, {tiny::body("body", body)})},
                  {tiny::value("count", tiny::tensor_type({}, ElementType::kInt64)),
                   tiny::value("start", tiny::tensor_type({1}, ElementType::kInt64))},
                  {tiny::value("y", tiny::tensor_type({"k"}, ElementType::kInt64))}));
}

Value int64s(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  Value value = Value::CreateTensor(ElementType::kInt64, shape);
  std::copy(values.begin(), values.end(), value.GetTensorMutableData<int64_t>());
  return value;
}

TEST(Leniency, ALoopsIterationNumberMayBeDeclaredAsOneElement) {
  const Proto model = loop_model({1});
  EXPECT_THAT(tolerated(model), ElementsAre(HasSubstr("iteration number")));
  Session session = open(model.bytes);
  const Value y =
      session.Run(RunOptions(), {"count", "start"}, {int64s({}, {3}), int64s({1}, {7})}, {"y"})[0];
  const auto* data = y.GetTensorData<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(data, data + y.GetElementCount()), ElementsAre(7, 0, 1, 2));
  EXPECT_EQ(code_of([&] { open(loop_model({2}).bytes); }), ErrorCode::kInvalidModel);
}

TEST(Leniency, AnEmptyShapeThatNoScalarFitsIsUnknown) {
  const Proto model = tiny::model(
      tiny::graph({tiny::node("MatMul", {"x", "w"}, {"y"})}, {tiny::value("x", tiny::tensor_type({}))},
                  {tiny::value("y", tiny::tensor_type({}))},
                  {tiny::raw_tensor<float>("w", ElementType::kFloat, {2, 1}, {3, 4})}));
  EXPECT_THAT(tolerated(model), ElementsAre(HasSubstr("input 'x': its empty shape")));
  Session session = open(model.bytes);
  const Value y = session.Run(RunOptions(), {"x"}, {floats({1, 2}, {1, 2})}, {"y"})[0];
  EXPECT_EQ(y.GetShape(), (std::vector<int64_t>{1, 1}));
  EXPECT_THAT(to_floats(y), ElementsAre(11));
}

TEST(Leniency, AScalarThatFitsStaysAScalar) {
  const Proto model =
      tiny::model(tiny::graph({tiny::node("Relu", {"x"}, {"y"})}, {tiny::value("x", tiny::tensor_type({}))},
                              {tiny::value("y", tiny::tensor_type({}))}));
  Session session = open(model.bytes, strict());
  EXPECT_TRUE(session.GetInputs()[0].ranked);
  EXPECT_THAT(session.GetWarnings(), ElementsAre());
}

}  // namespace
}  // namespace plimsoll
