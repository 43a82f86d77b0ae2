// Edges with state: a run's results become the next run's weights, in place where nobody reads the old ones
// later.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/registry.h"
#include "prepare/updates.h"
#include "runtime/session_impl.h"
#include "runtime/session_support.h"

namespace plimsoll {
namespace {

using Impl = Session::Impl;

// y = x * w, with `w` = 1, 2, 3, ...
std::string scaling_model(int64_t width = 3) {
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"batch", std::to_string(width)});
  std::vector<float> values;
  for (int64_t i = 0; i < width; ++i) values.push_back(static_cast<float>(i + 1));
  model.output(model.node("Mul", {x, model.constant<float>("w", {width}, values)})[0]);
  return model.bytes();
}

Edge* find(const Graph& graph, std::string_view name) {
  for (Edge* edge : graph.initializers) {
    if (edge->name == name) return edge;
  }
  return nullptr;
}

GraphBuilder builder(Graph& graph) {
  return GraphBuilder(graph, "test", [](Node& node, BumpArena& arena) { resolve(node, arena); });
}

// w grows by the sum of x over the batch; the node that says so stands before the one that reads w.
void grow_by_sum(Graph& graph) {
  Edge* w = find(graph, "w");
  w->make_persistent();
  GraphBuilder build(*graph.nodes[0], [](Node& node, BumpArena& arena) { resolve(node, arena); });
  Edge* sum = build.op("ReduceSum", {graph.inputs[0]},
                       build.attributes()
                           .set("axes", std::span<const int64_t>(std::vector<int64_t>{0}))
                           .set("keepdims", int64_t{0}));
  graph.add_update(w, build.op("Add", {w, sum}));
}

struct Case {
  explicit Case(const std::string& model_bytes, const std::function<void(Graph&)>& rewrite,
                std::vector<Impl::Wanted> runs = {std::nullopt}, SessionOptions options = {},
                std::vector<int64_t> shape = {2, 3})
      : bytes(model_bytes) {
    options.SetIntraOpNumThreads(1);
    options.poison = true;
    const Impl::Rewrite how{rewrite, [runs](const Graph&) { return runs; }};
    session = std::make_unique<Impl>(
        Env(), ModelLocation{"", std::as_bytes(std::span<const char>(bytes))}, options,
        [shape](const auto&) {
          return Shapes{{"x", shape}};
        },
        how);
  }
  std::vector<float> run(const std::vector<float>& x, const Impl::Wanted& wanted = {}) {
    const std::vector<Value> inputs = {floats({2, 3}, x)};
    std::vector<Value> outputs(session->outputs.size());
    session->run({}, {inputs, outputs, &wanted, {}});
    return to_floats(outputs[0]);
  }
  std::vector<float> state(std::string_view name) {
    const Edge* edge = find(session->model->graph(), name);
    const auto* data = reinterpret_cast<const float*>(session->model->weights().raw(*edge));
    return {data, data + edge->data->view().elements()};
  }
  size_t stores(const Impl::Wanted& wanted = {}) {
    const auto plan = session->prepare({{2, 3}}, wanted);
    return static_cast<size_t>(std::count_if(plan->program().steps.begin(), plan->program().steps.end(),
                                             [](const Step& step) { return step.kind == StepKind::kStore; }));
  }
  std::string bytes;
  std::unique_ptr<Impl> session;
};

TEST(State, IsUpdatedInPlaceAfterItsLastReader) {
  Case c(scaling_model(), grow_by_sum);
  EXPECT_EQ(c.stores(), 0u);
  EXPECT_EQ(c.run({1, 1, 1, 2, 2, 2}), (std::vector<float>{1, 2, 3, 2, 4, 6}));
  EXPECT_EQ(c.state("w"), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(c.run({1, 1, 1, 0, 0, 0}), (std::vector<float>{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(c.state("w"), (std::vector<float>{5, 6, 7}));
}

TEST(State, StaysWhereARunWantsTheOutputsAlone) {
  const Impl::Wanted outputs_alone = std::vector<uint32_t>{0};
  Case c(scaling_model(), grow_by_sum, {std::nullopt, outputs_alone});
  EXPECT_EQ(c.run({1, 1, 1, 2, 2, 2}, outputs_alone), (std::vector<float>{1, 2, 3, 2, 4, 6}));
  EXPECT_EQ(c.state("w"), (std::vector<float>{1, 2, 3}));
}

// y = x * (next + w): the old value is read after the next one was made.
TEST(State, IsStoredAtTheEndWhereTheOldValueIsStillNeeded) {
  const auto rewrite = [](Graph& graph) {
    grow_by_sum(graph);
    GraphBuilder build(*graph.nodes.back(), [](Node& node, BumpArena& arena) { resolve(node, arena); });
    Edge* next = graph.outputs.back();
    Edge* both = build.op("Add", {build.op("Exp", {next}), find(graph, "w")});
    graph.nodes.back()->inputs[1] = both;
  };
  Case c(scaling_model(), rewrite);
  EXPECT_EQ(c.stores(), 1u);
  c.run({-1, -2, -3, 0, 0, 0});
  EXPECT_EQ(c.state("w"), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(c.run({1, 1, 1, 0, 0, 0}),
            (std::vector<float>{std::exp(1.f), std::exp(1.f), std::exp(1.f), 0, 0, 0}));
}

TEST(State, HasAccountsOfItsOwnToldToTheByte) {
  const auto rewrite = [](Graph& graph) {
    grow_by_sum(graph);
    GraphBuilder build(graph, "test", [](Node& node, BumpArena& arena) { resolve(node, arena); });
    const int64_t dims[] = {5000};
    for (const Account account : {Account::kGradients, Account::kOptimizer}) {
      Edge* state = graph.add_state(account_name(account), ElementType::kFloat, dims, account);
      graph.add_update(state, build.op("Add", {state, build.scalar(1.0f)}));
    }
  };
  const std::string model = scaling_model();
  Case c(model, rewrite);
  const auto plan = c.session->prepare({{2, 3}}, {});
  const std::shared_ptr<ShapePlan> plans[] = {plan};
  const Requirement told = requirement(*c.session->model, plans);
  c.run({1, 1, 1, 2, 2, 2});
  c.run({1, 1, 1, 2, 2, 2});
  EXPECT_EQ(c.state("gradients"), std::vector<float>(5000, 2.0f));
  EXPECT_EQ(c.state("optimizer"), std::vector<float>(5000, 2.0f));
  const MemoryReport report = c.session->budget.report();
  EXPECT_EQ(report.peak_bytes, told.peak_bytes);
  for (const Account account : {Account::kWeights, Account::kGradients, Account::kOptimizer})
    EXPECT_EQ(report[account].now_bytes, c.session->model->weights().state_bytes(account));
  EXPECT_EQ(report[Account::kGradients].now_bytes, 20480);

  SessionOptions enough;
  enough.memory_limit_bytes = told.peak_bytes;
  Case(model, rewrite, {std::nullopt}, enough).run({1, 1, 1, 2, 2, 2});
  SessionOptions too_little;
  too_little.memory_limit_bytes = told.peak_bytes - 1;
  EXPECT_EQ(code_of([&] { Case(model, rewrite, {std::nullopt}, too_little); }), ErrorCode::kBudgetExceeded);
}

TEST(State, AStepMakesNoHeapCall) {
  Case c(scaling_model(), grow_by_sum);
  const std::vector<Value> inputs = {floats({2, 3}, {1, 1, 1, 2, 2, 2})};
  std::vector<Value> outputs = {floats({2, 3}, {0, 0, 0, 0, 0, 0})};
  const Impl::Wanted all;
  const RunOptions options;
  c.session->run(options, {inputs, outputs, &all, {}});
  heap::Watch watch;
  c.session->run(options, {inputs, outputs, &all, {}});
  EXPECT_EQ(watch.stop(), 0);
}

TEST(State, ANextValueOfAnotherShapeIsRefused) {
  const auto rewrite = [](Graph& graph) {
    Edge* w = find(graph, "w");
    w->make_persistent();
    graph.add_update(w, graph.nodes[0]->outputs[0]);
  };
  EXPECT_EQ(code_of([&] { Case(scaling_model(), rewrite); }), ErrorCode::kInvalidModel);
}

TEST(State, TheCheckerFindsAReaderAfterTheUpdate) {
  Case c(scaling_model(), grow_by_sum);
  Budget budget("test", 0);
  TransientMemory memory(budget);
  const Graph& graph = c.session->model->graph();
  DimPool pool(memory.arena());
  FactsTable facts(graph, memory.arena());
  for (const Edge* edge : graph.inputs) facts[edge] = edge->facts;
  GraphInferrer(facts, memory.arena(), pool).infer(graph);
  LifetimeOptions options;
  options.updated = graph.updated.span();
  Schedule order = settle_updates(graph, facts, file_order(graph, memory), options, memory);
  Lifetimes good = analyze(graph, facts, Schedule(order, memory.resource()), options, memory);
  EXPECT_TRUE(check_updates(good).empty());
  // The update first, and its place taken all the same.
  std::rotate(order.begin(), order.end() - 1, order.end());
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 2);
  Lifetimes bad = analyze(graph, facts, Schedule(order, memory.resource()), options, memory);
  EXPECT_TRUE(check_updates(bad).empty());
  const uint32_t state = bad.values.states()[0], next = bad.values.outputs().back();
  bad.locations[next] = {Where::kConstant, state, 0};
  EXPECT_FALSE(check_updates(bad).empty());
}

}  // namespace
}  // namespace plimsoll
