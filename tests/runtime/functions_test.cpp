// Local functions, end to end: versions of their own, attributes handed on, and what they may not do.
#include <gmock/gmock.h>

#include "onnx/tiny_model.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tiny::Proto;
namespace field = tiny::function_field;

Proto function(const std::string& name, const std::vector<Proto>& nodes, const std::string& overload = "") {
  Proto p = Proto()
                .text(field::kName, name)
                .text(field::kDomain, "local")
                .text(field::kInput, "a")
                .text(field::kOutput, "b")
                .messages(field::kNode, nodes);
  if (!overload.empty()) p.text(field::kOverload, overload);
  return p;
}
Proto importing(Proto f, const std::string& domain, int64_t version) {
  return f.message(field::kOpsetImport, tiny::opset(domain, version));
}
Proto model_of(const std::vector<Proto>& nodes, const std::vector<Proto>& functions,
               const std::vector<tiny::DimSpec>& dims = {2}) {
  return tiny::model(
             tiny::graph(nodes, {tiny::value("x", dims)}, {Proto().text(tiny::value_field::kName, "y")}))
      .message(tiny::model_field::kOpsetImport, tiny::opset("local", 1))
      .messages(tiny::model_field::kFunctions, functions);
}
Proto float_attribute(const std::string& name, float value) {
  return tiny::attribute(name, AttributeType::kFloat).real(tiny::attribute_field::kFloat, value);
}
Proto reference(const std::string& name, const std::string& to) {
  return tiny::attribute(name, AttributeType::kFloat).text(tiny::attribute_field::kReference, to);
}
std::vector<float> run(const Proto& model, const Value& x) {
  Session session = open(model.bytes);
  return to_floats(session.Run(RunOptions(), {"x"}, {x}, {"y"})[0]);
}

}  // namespace

// Until opset 12 the axes were an attribute. The model is of 17, the function of 11.
TEST(Functions, HaveAVersionOfTheirOwn) {
  const Proto axes = tiny::attribute("axes", AttributeType::kInts).packed(tiny::attribute_field::kInts, {0});
  const Proto f = importing(function("F", {tiny::node("Squeeze", {"a"}, {"b"}, {axes})}), "", 11);
  const Proto model = model_of({tiny::node("F", {"x"}, {"y"}, {}, "local")}, {f}, {1, 2});
  Session session = open(model.bytes);
  const Value y = session.Run(RunOptions(), {"x"}, {floats({1, 2}, {3, 4})}, {"y"})[0];
  EXPECT_EQ(y.GetShape(), (std::vector<int64_t>{2}));
  const Proto newer = importing(function("F", {tiny::node("Squeeze", {"a"}, {"b"}, {axes})}), "", 17);
  EXPECT_EQ(code_of([&] {
              open(model_of({tiny::node("F", {"x"}, {"y"}, {}, "local")}, {newer}, {1, 2}).bytes);
            }),
            ErrorCode::kInvalidModel);
}

TEST(Functions, WithoutAnImportAreOfTheModelsVersion) {
  const Proto f = function("F", {tiny::node("Relu", {"a"}, {"b"})});
  const Proto model = model_of({tiny::node("F", {"x"}, {"y"}, {}, "local")}, {f});
  EXPECT_THAT(run(model, floats({2}, {-1, 1})), ElementsAre(0, 1));
  EXPECT_THAT(open(model.bytes).GetWarnings(), ElementsAre(HasSubstr("opset import for domain 'ai.onnx'")));
}

TEST(Functions, HandAttributesOnOrTakeTheirDefaults) {
  const Proto inner =
      importing(function("Inner", {tiny::node("LeakyRelu", {"a"}, {"b"}, {reference("alpha", "slope")})})
                    .text(field::kAttribute, "slope"),
                "", 17);
  Proto outer =
      importing(function("Outer", {tiny::node("Inner", {"a"}, {"b"}, {reference("slope", "s")}, "local")}),
                "", 17)
          .message(field::kOpsetImport, tiny::opset("local", 1))
          .message(field::kAttributeDefault, float_attribute("s", 0.25f));
  const Value x = floats({2}, {-1, 1});
  EXPECT_THAT(run(model_of({tiny::node("Outer", {"x"}, {"y"}, {float_attribute("s", 0.5f)}, "local")},
                           {inner, outer}),
                  x),
              ElementsAre(-0.5f, 1));
  EXPECT_THAT(run(model_of({tiny::node("Outer", {"x"}, {"y"}, {}, "local")}, {inner, outer}), x),
              ElementsAre(-0.25f, 1));
  const Proto misspelt =
      model_of({tiny::node("Outer", {"x"}, {"y"}, {float_attribute("t", 0.5f)}, "local")}, {inner, outer});
  EXPECT_THAT(run(misspelt, x), ElementsAre(-0.25f, 1));
  EXPECT_THAT(open(misspelt.bytes).GetWarnings(),
              ElementsAre(HasSubstr("unknown attribute 't' of function 'Outer'")));
}

TEST(Functions, OfOneNameAreToldApartByTheirOverload) {
  const Proto first = importing(function("F", {tiny::node("Relu", {"a"}, {"b"})}, "first"), "", 17);
  const Proto second = importing(function("F", {tiny::node("Neg", {"a"}, {"b"})}, "second"), "", 17);
  const auto call = [](const std::string& overload) {
    return tiny::node("F", {"x"}, {"y"}, {}, "local").text(tiny::node_field::kOverload, overload);
  };
  const Value x = floats({2}, {-1, 1});
  EXPECT_THAT(run(model_of({call("first")}, {first, second}), x), ElementsAre(0, 1));
  EXPECT_THAT(run(model_of({call("second")}, {first, second}), x), ElementsAre(1, -1));
  EXPECT_EQ(code_of([&] {
              open(model_of({call("third")}, {first, second}).bytes);
            }),
            ErrorCode::kNotImplemented);
}

// ONNX forbids the one and leaves the other to us; ONNX Runtime takes the last, and its own operator.
TEST(Functions, GiveWayToLaterOnesAndToOperators) {
  const Proto relu = importing(function("F", {tiny::node("Relu", {"a"}, {"b"})}), "", 17);
  const Proto neg = importing(function("F", {tiny::node("Neg", {"a"}, {"b"})}), "", 17);
  const Proto twice = model_of({tiny::node("F", {"x"}, {"y"}, {}, "local")}, {relu, neg});
  EXPECT_THAT(run(twice, floats({2}, {-1, 1})), ElementsAre(1, -1));
  EXPECT_THAT(open(twice.bytes).GetWarnings(), ElementsAre(HasSubstr("function 'F'")));
  const Proto abs = importing(Proto()
                                  .text(field::kName, "Abs")
                                  .text(field::kDomain, "")
                                  .text(field::kInput, "a")
                                  .text(field::kOutput, "b")
                                  .messages(field::kNode, {tiny::node("Neg", {"a"}, {"b"})}),
                              "", 17);
  const Proto named = model_of({tiny::node("Abs", {"x"}, {"y"})}, {abs});
  EXPECT_THAT(run(named, floats({2}, {-1, 1})), ElementsAre(1, 1));
  EXPECT_THAT(open(named.bytes).GetWarnings(), ElementsAre(HasSubstr("function 'Abs'")));
}

// The caller's body sees the caller's values; each use has a body of its own.
TEST(Functions, MayUseABodyOfTheirCallerAgainAndAgain) {
  const auto given = [](const std::string& name) {
    return tiny::attribute(name, AttributeType::kGraph).text(tiny::attribute_field::kReference, "body");
  };
  const std::vector<Proto> branches = {given("then_branch"), given("else_branch")};
  const Proto keep = tiny::attribute("keepdims", AttributeType::kInt).number(tiny::attribute_field::kInt, 0);
  const Proto to = tiny::attribute("to", AttributeType::kInt).number(tiny::attribute_field::kInt, 9);
  const Proto f = importing(
      function("F",
               {tiny::node("ReduceMax", {"a"}, {"most"}, {keep}), tiny::node("Cast", {"most"}, {"c"}, {to}),
                tiny::node("If", {"c"}, {"first"}, branches), tiny::node("If", {"c"}, {"second"}, branches),
                tiny::node("Add", {"first", "second"}, {"b"})})
          .text(field::kAttribute, "body"),
      "", 17);
  const Proto body = tiny::graph({tiny::node("Neg", {"x"}, {"n"}), tiny::node("Mul", {"n", "n"}, {"z"})}, {},
                                 {Proto().text(tiny::value_field::kName, "z")});
  const Proto model = model_of({tiny::node("F", {"x"}, {"y"}, {tiny::body("body", body)}, "local")}, {f});
  EXPECT_THAT(run(model, floats({2}, {3, 1})), ElementsAre(18, 2));
  EXPECT_THAT(run(model, floats({2}, {0, -2})), ElementsAre(0, 8));
}

TEST(Functions, MayNotCallThemselves) {
  const Proto f = importing(function("F", {tiny::node("G", {"a"}, {"b"}, {}, "local")}), "local", 1);
  const Proto g = importing(function("G", {tiny::node("F", {"a"}, {"b"}, {}, "local")}), "local", 1);
  EXPECT_EQ(code_of([&] {
              open(model_of({tiny::node("F", {"x"}, {"y"}, {}, "local")}, {f, g}).bytes);
            }),
            ErrorCode::kInvalidModel);
}

}  // namespace plimsoll
