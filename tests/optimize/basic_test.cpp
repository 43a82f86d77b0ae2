#include <gmock/gmock.h>

#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

TEST(DeadCode, RemovesNodesAndConstantsThatNobodyNeeds) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  c.node("Add", {c.node("Neg", {x}), c.weights({3})});
  c.output(c.node("Relu", {x}));
  EXPECT_TRUE(c.apply(remove_dead_code));
  EXPECT_EQ(c.node_count(), 1);
  EXPECT_EQ(c.root().initializers.size(), 0u);
  EXPECT_FALSE(remove_dead_code(c.root(), {}));
}

TEST(Identity, OfAnInitializerGoesAway) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  c.output(c.node("Add", {x, c.node("Identity", {c.weights({3})})}));
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Identity, KeepsTheNameOfAnOutput) {
  GraphCase c;
  Edge* y = c.node("Relu", {c.input({2})});
  Edge* z = c.node("Identity", {y});
  c.output(c.node("Neg", {y}));
  c.output(z);
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.root().outputs[1], z);
  EXPECT_EQ(c.count("Identity"), 0);
}

TEST(Identity, StaysBetweenAnInputAndAnOutput) {
  GraphCase c;
  c.output(c.node("Identity", {c.input({2})}));
  EXPECT_FALSE(c.apply(remove_identities));
  EXPECT_EQ(c.count("Identity"), 1);
}

TEST(Identity, StaysBetweenTwoOutputs) {
  GraphCase c;
  Edge* y = c.node("Relu", {c.input({2})});
  c.output(y);
  c.output(c.node("Identity", {y}));
  EXPECT_FALSE(c.apply(remove_identities));
}

TEST(Identity, TransposeReshapeAndNeutralConstants) {
  GraphCase c;
  Edge* x = c.input({-1, 3, 4});
  Edge* y = c.transpose(x, {0, 1, 2});
  y = c.node("Mul", {y, c.scalar(1)});
  y = c.node("Add", {y, c.scalar(0)});
  y = c.node("Reshape", {y, c.constant<int64_t>({3}, {-1, 3, 4})});
  c.output(c.node("Neg", {y}));
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Identity, AScalarThatRaisesTheRankIsNotNeutral) {
  GraphCase c;
  Edge* y = c.node("Mul", {c.input({3}), c.constant<float>({1, 1}, {1})});
  c.output(c.node("Neg", {y}));
  EXPECT_FALSE(c.apply(remove_identities));
}

TEST(Identity, UnsqueezeThenSqueeze) {
  GraphCase c;
  Edge* axes = c.constant<int64_t>({1}, {1});
  Edge* y = c.node("Squeeze", {c.node("Unsqueeze", {c.input({-1, 4}), axes}), axes});
  c.output(c.node("Neg", {y}));
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Identity, ReshapeOfReshape) {
  GraphCase c;
  Edge* y = c.node("Reshape", {c.input({-1, 4, 6}), c.constant<int64_t>({2}, {-1, 24})});
  c.output(c.node("Reshape", {y, c.constant<int64_t>({3}, {-1, 3, 8})}));
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.count("Reshape"), 1);
}

TEST(Identity, WhatBroadcastsNeedsNoExpand) {
  GraphCase c;
  Edge* x = c.input({-1, 4});
  Edge* norm = c.node("ReduceSum", {x, c.constant<int64_t>({1}, {1})});
  Edge* y = c.node("Expand", {norm, c.node("Shape", {x})});
  c.output(c.node("Div", {x, y}));
  EXPECT_TRUE(c.apply(remove_identities));
  EXPECT_EQ(c.count("Expand"), 0);
}

TEST(Identity, AnExpandThatMakesTheShapeStays) {
  GraphCase c;
  Edge* x = c.input({1, 4});
  Edge* y = c.node("Expand", {c.input({3, 1}), c.constant<int64_t>({2}, {3, 4})});
  c.output(c.node("Add", {x, y}));
  EXPECT_FALSE(c.apply(remove_identities));
}

// A view in between may say that a symbol has a certain size.
TEST(Identity, AViewThatTellsASizeStays) {
  GraphCase c;
  Edge* x = c.input({4, -1, 6});
  Edge* y = c.node("Reshape", {x, c.constant<int64_t>({4}, {4, 5, 2, 3})});
  c.output(c.node("Reshape", {y, c.constant<int64_t>({4}, {4, 5, 6, -1})}));
  EXPECT_FALSE(c.apply(remove_identities));
}

TEST(Identity, ASplitThatTellsASizeStays) {
  GraphCase c;
  c.output(c.nodes("Split", {c.input({-1, 4}), c.constant<int64_t>({1}, {5})}, 1, c.attrs())[0]);
  EXPECT_FALSE(c.apply(remove_identities));
  GraphCase same;
  same.output(same.node("Neg", {same.nodes("Split", {same.input({-1, 4})}, 1, same.attrs())[0]}));
  EXPECT_TRUE(same.apply(remove_identities));
  EXPECT_EQ(same.node_count(), 1);
}

TEST(Fold, ChainsOfConstants) {
  GraphCase c;
  Edge* a = c.node("Add", {c.weights({3}), c.weights({3})});
  c.output(c.node("Mul", {c.input({2, 3}), c.node("Sqrt", {c.node("Mul", {a, a})})}));
  EXPECT_TRUE(c.apply(fold_constants));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Fold, RespectsTheCap) {
  GraphCase c;
  Edge* big = c.node("Expand", {c.weights({1, 16}), c.constant<int64_t>({2}, {64, 16})});
  c.output(c.node("Mul", {c.input({64, 16}), big}));
  OptimizeOptions options;
  options.fold_bytes_cap = 1024;
  EXPECT_FALSE(c.apply(fold_constants, options));
  options.fold_bytes_cap = 4096;
  EXPECT_TRUE(c.apply(fold_constants, options));
}

TEST(Fold, AboveTheCapOnlyIfItShrinks) {
  GraphCase c;
  Edge* part =
      c.node("Slice", {c.weights({64, 16}), c.constant<int64_t>({1}, {0}), c.constant<int64_t>({1}, {32})});
  c.output(c.node("Mul", {c.input({32, 16}), part}));
  OptimizeOptions options;
  options.fold_bytes_cap = 1024;
  EXPECT_TRUE(c.apply(fold_constants, options));
}

// A convolution packs its weight once if it is constant: else every run would make it and pack it.
TEST(Fold, TheWeightOfAConvolutionMayBeLarger) {
  OptimizeOptions options;
  options.fold_bytes_cap = 512;
  const auto folds = [&](const char* op, const std::vector<int64_t>& x) {
    GraphCase c;
    const std::vector<int64_t> shape = {16, 16, 1, 1};
    Edge* wide = c.node("Expand", {c.weights({1, 16, 1, 1}), c.constant<int64_t>({4}, shape)});
    Edge* w = c.node("Add", {wide, c.weights(shape)});
    c.output(c.node(op, {c.input(x), w}));
    return c.apply(fold_constants, options) && c.node_count() == 1;
  };
  EXPECT_FALSE(folds("Mul", {1, 16, 1, 1}));
  EXPECT_TRUE(folds("Conv", {1, 16, 5, 5}));
  options.fold_bytes_cap = 255;
  EXPECT_FALSE(folds("Conv", {1, 16, 5, 5}));
}

TEST(Fold, GivesBackWhatWasMadeOnTheWay) {
  constexpr int64_t kBytes = 256 * 256 * 4;
  GraphCase c;
  Edge* on_the_way = c.node("Mul", {c.weights({256, 256}), c.scalar(2)});
  c.output(c.node("Add", {c.input({256, 256}), c.node("Add", {on_the_way, c.scalar(1)})}));
  c.ready();
  const int64_t before = c.arena().mapped_bytes();
  EXPECT_TRUE(fold_constants(c.root(), {}));
  EXPECT_EQ(c.find("Add")->input(1)->constant->bytes(), kBytes);
  EXPECT_LT(c.arena().mapped_bytes() - before, 2 * kBytes);
}

TEST(Fold, KeepsWhatAnotherShapeOfItIs) {
  GraphCase c;
  Edge* made = c.node("Mul", {c.weights({256, 256}), c.scalar(2)});
  Edge* flat = c.node("Reshape", {made, c.constant<int64_t>({1}, {-1})});
  Edge* y = c.node("Add", {c.input({65536}), flat});
  c.output(c.node("Add", {y, c.node("Reshape", {c.node("Neg", {made}), c.constant<int64_t>({1}, {-1})})}));
  EXPECT_TRUE(c.apply(fold_constants));
}

TEST(Fold, DoesNotCopyALargeTransposedWeight) {
  GraphCase c;
  Edge* w = c.transpose(c.weights({256, 128}), {1, 0});
  c.output(c.node("Mul", {c.input({128, 256}), w}));
  EXPECT_FALSE(c.apply(fold_constants));
}

TEST(Fold, AReshapedWeightIsTheSameBytes) {
  GraphCase c;
  Edge* w = c.weights({64, 64});
  c.output(c.node("Mul", {c.input({4096}), c.node("Reshape", {w, c.constant<int64_t>({1}, {-1})})}));
  EXPECT_TRUE(c.apply(fold_constants));
  EXPECT_EQ(c.find("Mul")->input(1)->constant->data, w->constant->data);
}

TEST(Fold, ShapesOfKnownDimensions) {
  GraphCase c;
  Edge* x = c.input({-1, 12, 4});
  Edge* shape = c.node("Shape", {x});
  Edge* width = c.node("Gather", {shape, c.constant<int64_t>({}, {1})});
  c.output(c.node("Mul", {x, c.node("Cast", {width}, c.attrs().set("to", int64_t{1}))}));
  if (find_op("", "Cast") == nullptr) GTEST_SKIP();
  EXPECT_TRUE(c.apply(fold_constants));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(Fold, LeavesToTheRunWhatTheDataForbids) {
  GraphCase c;
  Edge* wrong = c.node("Gather", {c.weights({3}), c.constant<int64_t>({2}, {7, 0})});
  c.output(c.node("Add", {c.input({2}), wrong}));
  c.ready();
  EXPECT_FALSE(fold_constants(c.root(), {}));
}

TEST(Fold, LeavesSymbolsAlone) {
  GraphCase c;
  Edge* x = c.input({-1, 12});
  c.output(c.node("Shape", {x}));
  EXPECT_FALSE(c.apply(fold_constants));
}

TEST(ConstantShapes, CopiedAndKnownDimensions) {
  GraphCase c;
  Edge* x = c.input({-1, -2, 12});
  Edge* front =
      c.node("Slice", {c.node("Shape", {x}), c.constant<int64_t>({1}, {0}), c.constant<int64_t>({1}, {2})});
  Edge* shape =
      c.node("Concat", {front, c.constant<int64_t>({2}, {3, 4})}, c.attrs().set("axis", int64_t{0}));
  c.output(c.node("Reshape", {x, shape}));
  EXPECT_TRUE(c.apply(use_constant_shapes));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ConstantShapes, OneProduct) {
  GraphCase c;
  Edge* x = c.input({-1, -2, 12});
  Edge* rows = c.node("Mul", {c.node("Gather", {c.node("Shape", {x}), c.constant<int64_t>({1}, {0})}),
                              c.node("Gather", {c.node("Shape", {x}), c.constant<int64_t>({1}, {1})})});
  Edge* shape = c.node("Concat", {rows, c.constant<int64_t>({1}, {12})}, c.attrs().set("axis", int64_t{0}));
  c.output(c.node("Reshape", {x, shape}));
  EXPECT_TRUE(c.apply(use_constant_shapes));
  EXPECT_EQ(c.node_count(), 1);
}

TEST(ConstantShapes, NotWhereTwoDimensionsChangePlaces) {
  GraphCase c;
  Edge* x = c.input({-1, -2, 12});
  Edge* places = c.constant<int64_t>({3}, {1, 0, 2});
  c.output(c.node("Reshape", {x, c.node("Gather", {c.node("Shape", {x}), places})}));
  EXPECT_FALSE(c.apply(use_constant_shapes));
}

TEST(Share, EqualNodesAndConstants) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* a = c.node("Add", {x, c.constant<float>({3}, {1, 2, 3})});
  Edge* b = c.node("Add", {x, c.constant<float>({3}, {1, 2, 3})});
  c.output(c.node("Mul", {a, b}));
  EXPECT_TRUE(c.apply(share_subexpressions));
  EXPECT_EQ(c.count("Add"), 1);
}

// What recomputation cloned stays two nodes.
TEST(Share, ClonesMadeOnPurposeStayApart) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* a = c.node("Exp", {x});
  Edge* b = c.node("Exp", {x});
  Edge* d = c.node("Exp", {x});
  c.output(c.node("Mul", {c.node("Mul", {a, b}), d}));
  b->producer->instance = d->producer->instance = 1;
  EXPECT_TRUE(c.apply(share_subexpressions));
  EXPECT_EQ(c.count("Exp"), 2);
  c.optimize_all();
  EXPECT_EQ(c.count("Exp"), 2);
}

TEST(Share, NotWithOtherAttributesOrInputs) {
  GraphCase c;
  Edge* x = c.input({3, 3});
  Edge* a = c.node("LeakyRelu", {x}, c.attrs().set("alpha", 0.1f));
  Edge* b = c.node("LeakyRelu", {x}, c.attrs().set("alpha", 0.2f));
  Edge* d = c.node("Add", {x, c.constant<float>({3}, {1, 2, 3})});
  Edge* e = c.node("Add", {x, c.constant<float>({3, 1}, {1, 2, 3})});
  c.output(c.node("Add", {c.node("Mul", {a, b}), c.node("Mul", {d, e})}));
  EXPECT_FALSE(c.apply(share_subexpressions));
}

TEST(Share, OutputsOfTheGraphStayApart) {
  GraphCase c;
  Edge* x = c.input({3});
  c.output(c.node("Neg", {x}));
  c.output(c.node("Neg", {x}));
  EXPECT_FALSE(c.apply(share_subexpressions));
}

TEST(ConstantBranches, TheChosenOneTakesTheNodesPlace) {
  GraphCase c;
  Edge* x = c.input({3});
  Graph bodies[2] = {Graph(c.root()), Graph(c.root())};
  const char* ops[] = {"Neg", "Relu"};
  AttributeList attributes = c.attrs();
  std::vector<Attribute> list;
  for (size_t i = 0; i < 2; ++i) {
    Edge* y = bodies[i].add_edge("y");
    Edge* in[] = {x};
    Edge* out[] = {y};
    bodies[i].add_node("", ops[i], "", in, out);
    bodies[i].outputs.push_back(y);
    Attribute& a = list.emplace_back();
    a.name = i == 0 ? "then_branch" : "else_branch", a.type = AttributeType::kGraph, a.graph = &bodies[i];
  }
  Edge* out[] = {c.root().add_edge("out")};
  Edge* in[] = {c.constant<bool>({}, {false})};
  c.root().add_node("", "If", "", in, out, list);
  c.output(out[0]);
  c.ready();
  optimize(c.root(), {});
  EXPECT_EQ(c.count("If"), 0);
  EXPECT_EQ(c.count("Relu"), 1);
  EXPECT_EQ(c.node_count(), 1);
  EXPECT_EQ(c.root().outputs[0], out[0]);
}

// A body whose node moves out of a branch knows where it is now.
TEST(ConstantBranches, BodiesWithinMoveAlong) {
  GraphCase c;
  Edge* x = c.input({3});
  const auto one_node = [&](Graph& body, const char* op) {
    Edge* in[] = {x};
    Edge* out[] = {body.add_edge(op)};
    body.add_node("", op, "", in, out);
    body.outputs.push_back(out[0]);
  };
  const auto branch = [](const char* name, Graph* body) {
    Attribute a;
    a.name = name, a.type = AttributeType::kGraph, a.graph = body;
    return a;
  };
  Graph* outer = c.arena().make<Graph>(c.root());
  Graph* inner[] = {c.arena().make<Graph>(*outer), c.arena().make<Graph>(*outer)};
  one_node(*inner[0], "Neg");
  one_node(*inner[1], "Relu");
  Edge* condition = c.root().add_edge("condition");
  condition->facts = c.input({}, ElementType::kBool)->facts;
  Edge* in[] = {c.root().inputs[1]};
  Edge* out[] = {outer->add_edge("chosen")};
  outer->add_node("", "If", "inner", in, out,
                  std::vector{branch("then_branch", inner[0]), branch("else_branch", inner[1])});
  outer->outputs.push_back(out[0]);
  Graph* other = c.arena().make<Graph>(c.root());
  one_node(*other, "Abs");
  Edge* always[] = {c.constant<bool>({}, {true})};
  Edge* result[] = {c.root().add_edge("result")};
  c.root().add_node("", "If", "outer", always, result,
                    std::vector{branch("then_branch", outer), branch("else_branch", other)});
  c.output(result[0]);
  c.ready();
  OptimizeOptions options;
  options.check_passes = true;
  optimize(c.root(), options);
  EXPECT_EQ(c.count("If"), 1);
  EXPECT_EQ(inner[0]->outer(), &c.root());
}

// ---- the checker ------------------------------------------------------------------------------------

std::string problem_of(Graph& root) {
  try {
    check_links(root);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(CheckGraph, FindsWhatAPassMayGetWrong) {
  GraphCase c;
  Edge* x = c.input({2, 3});
  Edge* y = c.node("Relu", {x});
  Edge* z = c.node("Neg", {y});
  c.output(z);
  c.ready();
  Graph& root = c.root();
  EXPECT_EQ(problem_of(root), "");
  std::swap(root.nodes[0], root.nodes[1]);
  EXPECT_THAT(problem_of(root), testing::HasSubstr("is not made before it"));
  std::swap(root.nodes[0], root.nodes[1]);
  y->producer = nullptr;
  EXPECT_THAT(problem_of(root), testing::HasSubstr("another producer"));
  y->producer = root.nodes[0];
  root.nodes[1]->outputs[0] = y;
  EXPECT_THAT(problem_of(root), testing::HasSubstr("made twice"));
  root.nodes[1]->outputs[0] = z;
  root.outputs[0] = root.add_edge("nobody's");
  EXPECT_THAT(problem_of(root), testing::HasSubstr("is made by nobody"));
}

TEST(CheckGraph, NamesThePass) {
  const auto after = [](void (*change)(GraphCase&)) {
    GraphCase c;
    Edge* y = c.node("Transpose", {c.input({2, 3})});
    c.output(y);
    c.ready();
    PassChecker checker(c.root());
    change(c);
    try {
      checker.check("this pass");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(after([](GraphCase&) {}), "");
  // Not a node that a file could hold; other facts than inference finds; another shape of an output.
  const std::string attribute = after([](GraphCase& c) {
    c.root().nodes[0]->attributes = c.arena().copy(c.attrs().set("nonsense", int64_t{1}).list());
  });
  EXPECT_THAT(attribute, testing::StartsWith("this pass is wrong"));
  EXPECT_THAT(attribute, testing::HasSubstr("nonsense"));
  EXPECT_THAT(after([](GraphCase& c) { c.root().outputs[0]->facts.type = c.root().inputs[0]->facts.type; }),
              testing::HasSubstr("inference finds"));
  EXPECT_THAT(after([](GraphCase& c) {
                c.root().nodes[0]->op_type = "Identity";
                resolve(c.root());
                infer_graph(c.root());
              }),
              testing::HasSubstr("output 0 was"));
}

TEST(Pipeline, StopsAfterN) {
  GraphCase c;
  Edge* x = c.input({2});
  c.node("Neg", {x});
  c.output(c.node("Relu", {c.node("Identity", {x})}));
  c.ready();
  OptimizeOptions options;
  options.stop_after = 0;
  optimize(c.root(), options);
  EXPECT_EQ(c.node_count(), 3);
  options.stop_after = 1;
  optimize(c.root(), options);
  EXPECT_EQ(c.node_count(), 2);
}

// Squeezes a size of 1 where there is one, as PyTorch writes it: the first chooses what the second asks
// about.
TEST(ConstantBranches, OneDecidesTheNext) {
  GraphCase c;
  Edge* y = c.input({1, 3});
  const auto choose = [&](Edge* x, Edge* condition, const std::string& then_op) {
    AttributeList attributes = c.attrs();
    std::vector<Attribute> bodies(2);
    for (size_t i = 0; i < 2; ++i) {
      Graph* body = c.arena().make<Graph>(c.root());
      Edge* out[] = {body->add_edge(fmt::format("branch{}_{}", c.root().edge_count(), i))};
      Edge* in[] = {x};
      body->add_node("", i == 0 ? then_op : "Identity", "", in, out, {});
      body->outputs.push_back(out[0]);
      bodies[i].name = i == 0 ? "then_branch" : "else_branch";
      bodies[i].type = AttributeType::kGraph;
      bodies[i].graph = body;
    }
    Edge* result[] = {c.root().add_edge(fmt::format("chosen{}", c.root().edge_count()))};
    Edge* of[] = {condition};
    c.root().add_node("", "If", "", of, result, bodies);
    return result[0];
  };
  Edge* one = c.constant<int64_t>({}, {1});
  for (int i = 0; i < 3; ++i) {
    Edge* size = c.node("Gather", {c.node("Shape", {y}), c.constant<int64_t>({}, {0})});
    y = choose(y, c.node("Equal", {size, one}), "Squeeze");
  }
  c.output(y);
  c.ready();
  OptimizeOptions options;
  options.level = 1;
  options.check_passes = true;
  optimize(c.root(), options);
  EXPECT_EQ(c.count("If"), 0);
  EXPECT_EQ(c.count("Squeeze"), 1);
}

}  // namespace
}  // namespace plimsoll
