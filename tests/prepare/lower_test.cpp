#include "prepare/lower.h"

#include <gtest/gtest.h>

#include "memory/bump_arena.h"
#include "plimsoll/error.h"

namespace plimsoll {
namespace {

Attribute real_attribute(std::string_view name, float value) {
  Attribute a;
  a.name = name, a.type = AttributeType::kFloat, a.f = value;
  return a;
}

Attribute reference(std::string_view name, std::string_view to) {
  Attribute a;
  a.name = name, a.type = AttributeType::kFloat, a.reference = to;
  return a;
}

class Lower : public testing::Test {
 protected:
  Lower() : budget_("test", 0), arena_(budget_), dims_(arena_), root_(arena_, dims_) {
    imports_[0] = {"", 17};
    imports_[1] = {"local", 1};
    root_.opsets = imports_;
  }
  Edge* edge(Graph& graph, const char* name) { return graph.add_edge(name); }
  Node* node(Graph& graph, const char* domain, const char* op, const char* name, std::vector<Edge*> inputs,
             std::vector<Edge*> outputs, std::vector<Attribute> attributes = {}) {
    return graph.add_node(domain, op, name, inputs, outputs, attributes);
  }
  // f(x) = op(x) with alpha by reference, default 0.5
  Function leaky(const char* name, const char* domain, const char* op) {
    Graph* body = arena_.make<Graph>(root_);
    Edge* x = edge(*body, "x");
    Edge* y = edge(*body, "y");
    body->inputs.push_back(x);
    body->outputs.push_back(y);
    node(*body, domain, op, "inner", {x}, {y}, {reference("alpha", "slope")});
    Function f;
    f.domain = "local", f.name = name, f.body = body;
    static const Attribute kDefaults[] = {real_attribute("slope", 0.5f)};
    f.attribute_defaults = kDefaults;
    static const OpsetImport kImports[] = {{"", 16}, {"local", 1}};
    f.opsets = kImports;
    return f;
  }
  std::vector<std::string> ops(Graph& graph) {
    std::vector<std::string> names;
    for (Node* n : graph.nodes) names.emplace_back(n->op_type);
    return names;
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph root_;
  OpsetImport imports_[2];
};

TEST_F(Lower, SubstitutesAttributesAndKeepsEdges) {
  const Function functions[] = {leaky("F", "", "LeakyRelu")};
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  Edge* z = edge(root_, "z");
  root_.inputs.push_back(x);
  root_.outputs.push_back(z);
  node(root_, "local", "F", "first", {x}, {y}, {real_attribute("slope", 0.25f)});
  node(root_, "local", "F", "second", {y}, {z});
  inline_functions(root_);
  ASSERT_EQ(ops(root_), (std::vector<std::string>{"LeakyRelu", "LeakyRelu"}));
  EXPECT_EQ(root_.nodes[0]->attribute("alpha")->f, 0.25f);
  EXPECT_EQ(root_.nodes[1]->attribute("alpha")->f, 0.5f);
  EXPECT_EQ(root_.nodes[0]->opset, 16);
  EXPECT_EQ(root_.nodes[0]->name, "first/inner");
  EXPECT_EQ(root_.nodes[0]->input(0), x);
  EXPECT_EQ(root_.nodes[1]->outputs[0], z);
  EXPECT_EQ(z->producer, root_.nodes[1]);
}

TEST_F(Lower, NestedFunctionsPassAttributesOn) {
  Function outer = leaky("G", "local", "F");
  // G hands its slope to F under F's name for it.
  Graph* body = arena_.make<Graph>(root_);
  Edge* a = edge(*body, "x");
  Edge* b = edge(*body, "y");
  body->inputs.push_back(a);
  body->outputs.push_back(b);
  node(*body, "local", "F", "call", {a}, {b}, {reference("slope", "slope")});
  outer.body = body;
  const Function functions[] = {leaky("F", "", "LeakyRelu"), outer};
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  root_.outputs.push_back(y);
  node(root_, "local", "G", "top", {x}, {y}, {real_attribute("slope", 0.125f)});
  inline_functions(root_);
  ASSERT_EQ(ops(root_), std::vector<std::string>{"LeakyRelu"});
  EXPECT_EQ(root_.nodes[0]->attribute("alpha")->f, 0.125f);
  EXPECT_EQ(root_.nodes[0]->name, "top/call/inner");
}

TEST_F(Lower, RecursionIsRefused) {
  const Function functions[] = {leaky("F", "local", "G"), leaky("G", "local", "F")};
  root_.functions = functions;
  Edge* y = edge(root_, "y");
  root_.outputs.push_back(y);
  node(root_, "local", "F", "call", {edge(root_, "x")}, {y});
  EXPECT_THROW(inline_functions(root_), Error);
}

TEST_F(Lower, AnInputHandedOnBecomesAnIdentity) {
  Graph* body = arena_.make<Graph>(root_);
  Edge* a = edge(*body, "a");
  body->inputs.push_back(a);
  body->outputs.push_back(a);
  body->outputs.push_back(a);
  Function f;
  f.domain = "local", f.name = "Twice", f.body = body;
  const Function functions[] = {f};
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  Edge* z = edge(root_, "z");
  root_.outputs.push_back(y);
  root_.outputs.push_back(z);
  node(root_, "local", "Twice", "call", {x}, {y, z});
  inline_functions(root_);
  EXPECT_EQ(ops(root_), (std::vector<std::string>{"Identity", "Identity"}));
}

TEST_F(Lower, CallsInsideBodiesAndBodiesInsideFunctions) {
  // A function with an If whose branch uses the function's input.
  Graph* body = arena_.make<Graph>(root_);
  Edge* c = edge(*body, "c");
  Edge* a = edge(*body, "a");
  Edge* r = edge(*body, "r");
  body->inputs.push_back(c);
  body->inputs.push_back(a);
  body->outputs.push_back(r);
  std::vector<Attribute> branches;
  for (const char* name : {"then_branch", "else_branch"}) {
    Graph* branch = arena_.make<Graph>(*body);
    Edge* out = edge(*branch, "out");
    branch->outputs.push_back(out);
    node(*branch, "local", "F", "deep", {a}, {out});
    Attribute attribute;
    attribute.name = name, attribute.type = AttributeType::kGraph, attribute.graph = branch;
    branches.push_back(attribute);
  }
  node(*body, "", "If", "if", {c}, {r}, branches);
  Function f;
  f.domain = "local", f.name = "Choose", f.body = body;
  const Function functions[] = {leaky("F", "", "LeakyRelu"), f};
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  root_.outputs.push_back(y);
  node(root_, "local", "Choose", "call", {edge(root_, "flag"), x}, {y});
  inline_functions(root_);
  ASSERT_EQ(ops(root_), std::vector<std::string>{"If"});
  Graph* then_branch = root_.nodes[0]->attribute("then_branch")->graph;
  Graph* else_branch = root_.nodes[0]->attribute("else_branch")->graph;
  ASSERT_EQ(ops(*then_branch), std::vector<std::string>{"LeakyRelu"});
  EXPECT_EQ(then_branch->nodes[0]->input(0), x);
  EXPECT_EQ(then_branch->outer(), &root_);
  EXPECT_NE(then_branch->outputs[0]->name, else_branch->outputs[0]->name);
  // The function's own body is as it was, for the next call.
  EXPECT_EQ(body->nodes[0]->attribute("then_branch")->graph->nodes[0]->op_type, "F");
}

TEST_F(Lower, TooManyInputsAreRefused) {
  const Function functions[] = {leaky("F", "", "LeakyRelu")};
  root_.functions = functions;
  Edge* y = edge(root_, "y");
  root_.outputs.push_back(y);
  node(root_, "local", "F", "call", {edge(root_, "x"), edge(root_, "x2")}, {y});
  EXPECT_THROW(inline_functions(root_), Error);
}

TEST_F(Lower, OverloadsAreDifferentFunctions) {
  Function functions[] = {leaky("F", "", "LeakyRelu"), leaky("F", "", "Elu")};
  functions[1].overload = "other";
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  Edge* z = edge(root_, "z");
  root_.outputs.push_back(z);
  node(root_, "local", "F", "first", {x}, {y})->overload = "other";
  node(root_, "local", "F", "second", {y}, {z});
  inline_functions(root_);
  EXPECT_EQ(ops(root_), (std::vector<std::string>{"Elu", "LeakyRelu"}));
  EXPECT_TRUE(root_.functions.empty());
}

// A call inside a function names its overload too.
TEST_F(Lower, NestedCallsKeepTheirOverload) {
  Function functions[] = {leaky("F", "", "LeakyRelu"), leaky("F", "", "Elu"), leaky("G", "local", "F")};
  functions[1].overload = "other";
  functions[2].body->nodes[0]->overload = "other";
  root_.functions = functions;
  Edge* y = edge(root_, "y");
  root_.outputs.push_back(y);
  node(root_, "local", "G", "call", {edge(root_, "x")}, {y});
  inline_functions(root_);
  EXPECT_EQ(ops(root_), std::vector<std::string>{"Elu"});
}

// A body given as an attribute goes where the function puts it.
TEST_F(Lower, ABodyMayBeAnAttribute) {
  Graph* body = arena_.make<Graph>(root_);
  Edge* c = edge(*body, "c");
  Edge* r = edge(*body, "r");
  body->inputs.push_back(c);
  body->outputs.push_back(r);
  std::vector<Attribute> references;
  for (const char* name : {"then_branch", "else_branch"}) {
    Attribute& a = references.emplace_back();
    a.name = name, a.type = AttributeType::kGraph, a.reference = name;
  }
  node(*body, "", "If", "if", {c}, {r}, references);
  Function f;
  f.domain = "local", f.name = "Choose", f.body = body;
  const Function functions[] = {f};
  root_.functions = functions;
  Edge* x = edge(root_, "x");
  Edge* y = edge(root_, "y");
  std::vector<Attribute> given;
  for (const char* name : {"then_branch", "else_branch"}) {
    Graph* branch = arena_.make<Graph>(root_);
    Edge* out = edge(*branch, "out");
    branch->outputs.push_back(out);
    node(*branch, "", "Neg", "inner", {x}, {out});
    Attribute& a = given.emplace_back();
    a.name = name, a.type = AttributeType::kGraph, a.graph = branch;
  }
  root_.outputs.push_back(y);
  node(root_, "local", "Choose", "call", {edge(root_, "flag")}, {y}, given);
  inline_functions(root_);
  ASSERT_EQ(ops(root_), std::vector<std::string>{"If"});
  EXPECT_EQ(root_.nodes[0]->attribute("then_branch")->graph->nodes[0]->input(0), x);
  EXPECT_EQ(root_.nodes[0]->attribute("else_branch")->graph->outer(), &root_);
}

}  // namespace
}  // namespace plimsoll
