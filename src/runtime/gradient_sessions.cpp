#include "plimsoll/gradient.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "memory/transient_memory.h"
#include "optimize/pipeline.h"
#include "runtime/memory_settings.h"
#include "runtime/session_impl.h"
#include "train/split.h"
#include "train/stash.h"

namespace plimsoll {
namespace {

// Where every size is known: what is on the edges.
FactsTable facts_on_edges(const Graph& graph, BumpArena& arena) {
  FactsTable facts(graph, arena);
  for (const Edge* edge : graph.inputs) facts[edge] = edge->facts;
  for (const Edge* edge : graph.initializers) facts[edge] = edge->facts;
  for (const Node* node : graph.nodes) {
    for (const Edge* edge : node->outputs) {
      if (edge != nullptr) facts[edge] = edge->facts;
    }
  }
  return facts;
}

int64_t bytes_of(std::span<Edge* const> edges, const FactsTable& facts) {
  int64_t sum = 0;
  for (const Edge* edge : edges) sum += stashed_bytes(facts[edge]);
  return sum;
}

// Rounds what would be left between the two. The model's outputs are the caller's anyway.
void round_stashed(Graph& graph, const DifferentiatedModel& model, const FactsTable& facts) {
  constexpr int64_t kFewestBytes = 4096;
  const std::span<Edge* const> all = graph.outputs.span();
  const std::span<Edge* const> given = all.first(model.outputs);
  const ModelSplit parts(graph, model);
  const std::vector<Edge*> left = parts.stashed(std::vector<bool>(graph.node_count(), false));
  const auto has = [](std::span<Edge* const> edges, const Edge* edge) {
    return std::find(edges.begin(), edges.end(), edge) != edges.end();
  };
  std::vector<Stash> stashes = find_stashes(graph, all.first(model.outputs + model.statistics.size()), all);
  std::erase_if(stashes, [&](const Stash& stash) {
    return !has(left, stash.edge) || has(given, stash.edge) ||
           stashed_bytes(facts[stash.edge]) < kFewestBytes;
  });
  stash_in_bfloat16(graph, stashes);
}

// One configuration is for all modules of a program: what one of them does not have is told, not refused.
std::vector<std::string> select_known(std::vector<ClusterPlan>& plans, const MemoryConfig& config) {
  MemoryConfig known{config.level, {}, config.probe};
  std::vector<std::string> unknown;
  for (const ClusterRequest& request : config.requests) {
    const bool is_known = std::any_of(plans.begin(), plans.end(), [&](const ClusterPlan& plan) {
      return plan.cluster == request.cluster &&
             (request.strategy == RecomputeStrategy::kNone || plan.strategy == request.strategy);
    });
    if (is_known) {
      known.requests.push_back(request);
    } else {
      unknown.push_back(fmt::format("{}:{}", request.cluster, static_cast<int>(request.strategy)));
    }
  }
  select_cluster_plans(plans, known);
  return unknown;
}

DifferentiatedModel differentiated(Graph& graph, const GradientOptions& options) {
  prepare_differentiation(graph, static_cast<int>(options.session.optimization_level));
  return differentiate_model(graph, options.inputs);
}

// One of the two, and what was found while it was prepared.
class PartBuilder {
 public:
  PartBuilder(const GradientOptions& options, MemoryConfig config)
      : options_(options), config_(std::move(config)) {}

  std::unique_ptr<Session> open(const Env& env, const ModelLocation& location, ModelPart part) {
    SessionRewrite rewrite;
    rewrite.graph = [this](Graph& graph) { model = differentiated(graph, options_); };
    rewrite.finish = [this, part](Graph& graph) { split(graph, part); };
    SessionOptions session = options_.session;
    session.random_seed = 1;  // the same numbers in both parts
    return std::make_unique<Session>(
        std::make_unique<Session::Impl>(env, location, session, ShapesForInputs(), rewrite));
  }

  DifferentiatedModel model;
  std::vector<std::string> outputs, stashed, unknown;
  int64_t bytes = 0, all_bytes = 0;

 private:
  void split(Graph& graph, ModelPart part) {
    TransientMemory memory(graph.arena().budget());
    if (options_.precision == TrainingPrecision::kBFloat16)
      round_stashed(graph, model, facts_on_edges(graph, memory.arena()));
    const ModelSplit parts(graph, model);
    const FactsTable facts = facts_on_edges(graph, memory.arena());
    std::vector<bool> again(graph.node_count(), false);
    all_bytes = bytes_of(parts.stashed(again), facts);
    if (config_.names_any()) {
      std::vector<ClusterPlan> plans = find_cluster_plans(
          graph, parts.forward(), find_layers(graph, parts.forward()), facts, config_.probe);
      unknown = select_known(plans, config_);
      again = nodes_run_again(plans, graph.node_count());
    }
    bytes = bytes_of(parts.stashed(again), facts);
    outputs.clear();
    for (size_t i = 0; i < model.outputs; ++i) outputs.emplace_back(graph.outputs[i]->name);
    stashed = parts.keep(graph, part, again);
  }

  const GradientOptions& options_;
  MemoryConfig config_;
};

ModelLocation location_of(const void* model, size_t size) {
  return {"", {static_cast<const std::byte*>(model), size}};
}

void expect_equal(const PartBuilder& forward, const PartBuilder& backward) {
  if (forward.stashed != backward.stashed)
    throw std::logic_error("the parts of a differentiated model do not fit each other");
}

}  // namespace

GradientSessions OpenGradientSessions(const Env& env, const void* model, size_t size,
                                      const GradientOptions& options) {
  const MemoryConfig config = named_clusters(options.recompute, options.session);
  PartBuilder forward(options, config), backward(options, config);
  GradientSessions result;
  result.forward = forward.open(env, location_of(model, size), ModelPart::kForward);
  const auto is_wanted = [](const std::string& name) { return !name.empty(); };
  if (std::any_of(forward.model.gradients.begin(), forward.model.gradients.end(), is_wanted)) {
    result.backward = backward.open(env, location_of(model, size), ModelPart::kBackward);
    expect_equal(forward, backward);
  }
  result.outputs = forward.outputs;
  auto cotangent = forward.model.cotangents.begin();
  for (const bool is_differentiable : forward.model.differentiable)
    result.cotangents.push_back(is_differentiable ? *cotangent++ : "");
  result.gradients = forward.model.gradients;
  result.stashed = forward.stashed;
  result.statistics = forward.model.statistics;
  result.draws = forward.model.draws;
  result.unknown_clusters = forward.unknown;
  result.stashed_bytes = forward.bytes;
  result.all_stashed_bytes = forward.all_bytes;
  return result;
}

namespace {

// The facts of these shapes, whatever the graph leaves open.
FactsTable facts_for(const Graph& graph, const Shapes& shapes, BumpArena& arena, DimPool& pool) {
  std::map<std::string, int64_t, std::less<>> sizes;
  for (const Edge* edge : graph.inputs) {
    const auto given = shapes.find(std::string(edge->name));
    const TypeInfo& type = edge->facts.type;
    if (given == shapes.end() || !type.ranked || type.rank() != given->second.size()) continue;
    for (size_t i = 0; i < type.rank(); ++i) {
      if (!type.dims[i].is_constant()) sizes.emplace(type.dims[i].to_string(), given->second[i]);
    }
  }
  const auto size_of = [&](std::string_view name) {
    const auto found = sizes.find(name);
    return found == sizes.end() ? int64_t{1} : found->second;
  };
  FactsTable facts(graph, arena);
  for (const Edge* edge : graph.inputs) {
    Facts known;
    known.type = edge->facts.type;
    const std::span<Dim> dims = arena.array<Dim>(known.type.dims.size());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = known.type.dims[i].evaluate(size_of);
    known.type.dims = dims;
    facts[edge] = known;
  }
  GraphInferrer(facts, arena, pool).infer(graph);
  return facts;
}

}  // namespace

std::string DescribeGradientMemory(const Env& env, const void* model, size_t size,
                                   const GradientOptions& options, const Shapes& shapes, TableDetail detail) {
  const MemoryConfig config = named_clusters(options.recompute, options.session);
  Budget budget("memory optimizer", 0, &env.impl()->budget);
  DifferentiatedModel model_parts;
  std::string table;
  PrepareOptions preparation = prepare_options(options.session);
  preparation.rewrite = [&](Graph& graph) { model_parts = differentiated(graph, options); };
  preparation.finish = [&](Graph& graph) {
    TransientMemory memory(budget);
    DimPool pool(memory.arena());
    if (options.precision == TrainingPrecision::kBFloat16)
      round_stashed(graph, model_parts, facts_for(graph, shapes, memory.arena(), pool));
    const FactsTable facts = facts_for(graph, shapes, memory.arena(), pool);
    const ModelSplit parts(graph, model_parts);
    std::vector<ClusterPlan> plans =
        find_cluster_plans(graph, parts.forward(), find_layers(graph, parts.forward()), facts, config.probe);
    select_known(plans, config);
    const int64_t all = bytes_of(parts.stashed(std::vector<bool>(graph.node_count(), false)), facts);
    for (ClusterPlan& plan : plans)
      plan.planned_saved_bytes =
          all - bytes_of(parts.stashed(nodes_run_again(plan, graph.node_count())), facts);
    table = memory_table(plans, config.level, detail);
  };
  location_of(model, size).read(preparation, budget)->prepare();
  return table;
}

}  // namespace plimsoll
