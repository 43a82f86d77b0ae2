// What a training session is told, and what it tells, before it has any tensor memory.
#include <algorithm>
#include <cmath>

#include "optimize/pipeline.h"
#include "prepare/stash_choice.h"
#include "runtime/env_impl.h"
#include "runtime/memory_settings.h"
#include "runtime/training_session_impl.h"

namespace plimsoll {

void check_options(const TrainingOptions& options) {
  const OptimizerOptions& o = options.optimizer;
  const auto expect = [](const char* what, double value, double least, double below) {
    if (!(value >= least && value < below))
      fail(ErrorCode::kInvalidArgument, "training: {}: expected at least {} and below {}, found {}", what,
           least, below, value);
  };
  const double any = std::numeric_limits<double>::infinity();
  expect("learning rate", o.learning_rate, 0, any);
  expect("weight decay", o.weight_decay, 0, any);
  expect("momentum", o.momentum, 0, any);
  expect("beta1", o.beta1, 0, 1);
  expect("beta2", o.beta2, 0, 1);
  expect("alpha", o.alpha, 0, any);
  expect("max_grad_norm", o.max_grad_norm, 0, any);
  expect("max_grad_value", o.max_grad_value, 0, any);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    fail(ErrorCode::kInvalidArgument, "training: Nesterov needs momentum and no dampening");
}

Shapes training_shapes(const Graph& graph, const Shapes& given) {
  Shapes shapes = given;
  std::map<std::string, int64_t, std::less<>> symbols;
  const auto bind = [&](const Edge& edge, const std::vector<int64_t>& shape) {
    const TypeInfo& type = edge.facts.type;
    for (size_t i = 0; type.ranked && i < std::min(shape.size(), type.rank()); ++i) {
      if (!type.dims[i].is_constant()) symbols.emplace(type.dims[i].to_string(), shape[i]);
    }
  };
  for (const Edge* edge : graph.inputs) {
    if (const auto found = given.find(std::string(edge->name)); found != given.end())
      bind(*edge, found->second);
  }
  for (const Edge* edge : graph.inputs) {
    const TypeInfo& type = edge->facts.type;
    if (shapes.count(std::string(edge->name)) > 0 || !type.ranked) continue;
    bool known = true;
    std::vector<int64_t> shape;
    for (Dim d : type.dims) {
      shape.push_back(d.evaluate([&](std::string_view name) {
        const auto found = symbols.find(name);
        known &= found != symbols.end();
        return found == symbols.end() ? 1 : found->second;
      }));
    }
    if (known) shapes[std::string(edge->name)] = shape;
  }
  return shapes;
}

std::vector<ShapePlan::Wanted> training_runs(const TrainingOptions& options, const TrainingGraph& built) {
  std::vector<ShapePlan::Wanted> runs = {built.train};
  if (!built.optimize.empty()) runs.emplace_back(built.optimize);
  if (options.evaluate) runs.emplace_back(built.evaluate);
  return runs;
}

namespace {

// Mixed precision: returns what is rounded. Without shapes, that is all that may be.
std::vector<Edge*> round_stashes(Graph& graph, const TrainingOptions& options, const TrainingGraph& built) {
  std::vector<Edge*> wanted, updated;
  for (const uint32_t number : built.train) {
    wanted.push_back(graph.outputs[number]);
    if (number >= graph.visible_outputs()) updated.push_back(graph.updated[number - graph.visible_outputs()]);
  }
  const std::span<Edge* const> loss(wanted.data(), wanted.size() - updated.size());
  std::vector<Stash> stashes = find_stashes(graph, loss, wanted);
  const auto shapes = complete_shapes(graph, training_shapes(graph, options.shapes), true);
  if (!shapes.empty())
    stashes = worth_rounding(graph, std::move(stashes),
                             {wanted, updated, shapes, prepare_options(options.session).threads});
  return stash_in_bfloat16(graph, stashes);
}

}  // namespace

Session::Impl::Rewrite training_rewrite(const TrainingOptions& options, TrainingGraph& built) {
  Session::Impl::Rewrite rewrite;
  rewrite.memory_config = named_clusters(options.recompute, options.session);
  rewrite.recompute = options.recompute == "auto" && !rewrite.memory_config.names_any();
  rewrite.graph = [&](Graph& graph) {
    prepare_differentiation(graph, static_cast<int>(options.session.optimization_level));
    built = build_training_graph(graph, options);
  };
  if (options.precision == TrainingPrecision::kBFloat16)
    rewrite.finish = [&](Graph& graph) { built.rounded = round_stashes(graph, options, built); };
  rewrite.runs = [&](const Graph&) { return training_runs(options, built); };
  rewrite.shapes = [&](const Graph& graph) { return training_shapes(graph, options.shapes); };
  return rewrite;
}

Plan describe_training(const PreparedModel& model, const TrainingGraph& built,
                       std::span<const std::shared_ptr<ShapePlan>> plans) {
  Plan plan = describe_plan(model, *plans[0]);
  const Requirement need = requirement(model, plans);
  plan.accounts = need.accounts;
  plan.peak_bytes = need.peak_bytes;
  plan.minimum_limit_bytes = plan.depends_on_data ? 0 : need.peak_bytes;
  // No placement takes less off than the plan of a step has gaps.
  plan.lower_bound_bytes = need.peak_bytes - (plans[0]->planned_bytes() - plans[0]->most_live_bytes());
  for (const Edge* edge : built.rounded) {
    const auto buffer = std::find_if(plan.buffers.begin(), plan.buffers.end(),
                                     [&](const PlannedBuffer& b) { return b.name == edge->name; });
    // Half of the bytes are left: as many are saved.
    plan.rounded.push_back({std::string(edge->producer->inputs[0]->name),
                            buffer == plan.buffers.end() ? 0 : buffer->size_bytes});
  }
  return plan;
}

Plan TrainingSession::MakePlan(const Env& env, const std::string& model_path,
                               const TrainingOptions& training) {
  check_options(training);
  Budget budget("training plan", 0, &env.impl()->budget);
  TrainingGraph built;
  const Session::Impl::Rewrite rewrite = training_rewrite(training, built);
  PrepareOptions preparation = prepare_options(training.session);
  preparation.rewrite = rewrite.graph;
  preparation.finish = rewrite.finish;
  preparation.memory_config = rewrite.memory_config;
  const std::unique_ptr<PreparedModel> read = ModelLocation{model_path, {}}.read(preparation, budget);
  PreparedModel& model = *read;
  model.prepare();
  const auto shapes = complete_shapes(model.graph(), rewrite.shapes(model.graph()), false);
  const auto runs = training_runs(training, built);
  const auto plans = plan_together<ShapePlan>(model, shapes, runs, budget,
                                              training.session.memory_limit_bytes, rewrite.recompute);
  Plan plan = describe_training(model, built, plans);
  if (plan.minimum_limit_bytes > 0) {
    std::vector<std::shared_ptr<ShapePlan>> smallest;
    for (const ShapePlan::Wanted& wanted : runs)
      smallest.push_back(std::make_shared<ShapePlan>(
          model, shapes, budget, rewrite.recompute ? Effort::kRecompute : Effort::kThorough, wanted));
    plan.minimum_limit_bytes = std::min(plan.peak_bytes, requirement(model, smallest).peak_bytes);
  }
  plan.memory_optimizer =
      ShapePlan(model, shapes, budget, Effort::kQuick, runs[0], 0, training.memory_detail).cluster_table();
  return plan;
}

}  // namespace plimsoll
