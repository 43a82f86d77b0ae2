#include "prepare/memory_plan.h"

namespace plimsoll {

MemoryPlan::MemoryPlan(const Graph& root, FactsTable& facts, const LifetimeOptions& options, bool check,
                       std::span<Edge* const> forward_outputs, TransientMemory& memory, Budget& budget)
    : root_(root),
      facts_(facts),
      options_(options),
      check_(check),
      memory_(memory),
      budget_(budget),
      forward_(forward_part(root, forward_outputs)),
      natural_(best_proposal(root, facts, options, Effort::kQuick, check, memory, budget)),
      model_(natural_.lifetimes, facts, options, memory) {
  for (uint32_t t = 0; t < model_.order.size(); ++t) {
    if (forward_.nodes[model_.nodes[model_.order[t]].node->id]) middle_ = t;
  }
}

Proposal MemoryPlan::with(const std::vector<bool>& nodes, TransientMemory& memory) {
  std::pmr::vector<bool> numbers(model_.nodes.size(), false, memory_.resource());
  for (size_t n = 0; n < model_.nodes.size(); ++n) numbers[n] = nodes[model_.nodes[n].node->id];
  const Schedule schedule = model_.schedule(recompute_nodes(model_, middle_, numbers, memory_), memory);
  Proposal result = proposal_of(root_, facts_, options_, schedule, check_, memory);
  result.recomputation = recomputation_of(model_, result.lifetimes.schedule);
  result.recomputation.peak_bytes = result.peak_bytes();
  result.recomputation.saved_bytes = natural_bytes() - result.peak_bytes();
  return result;
}

std::vector<bool> MemoryPlan::selected(const MemoryConfig& config) const {
  std::vector<ClusterPlan> plans =
      find_cluster_plans(root_, forward_, find_layers(root_, forward_), facts_, config.probe);
  select_cluster_plans(plans, config);
  return nodes_run_again(plans, root_.node_count());
}

std::vector<ClusterPlan> MemoryPlan::clusters(const MemoryConfig& config) {
  std::vector<ClusterPlan> plans =
      find_cluster_plans(root_, forward_, find_layers(root_, forward_), facts_, config.probe);
  select_cluster_plans(plans, config);
  for (ClusterPlan& plan : plans) {
    TransientMemory trial(budget_);
    plan.planned_saved_bytes =
        natural_bytes() - with(nodes_run_again(plan, root_.node_count()), trial).peak_bytes();
  }
  return plans;
}

}  // namespace plimsoll
