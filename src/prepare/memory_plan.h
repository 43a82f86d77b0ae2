// The memory optimizer's clusters (train/memory_optimizer.h) met with the planner: the schedule that they
// make, and what each really saves.
#pragma once

#include "prepare/proposals.h"
#include "train/memory_optimizer.h"

namespace plimsoll {

// Plans of one concrete shape in which nodes that are named run again behind the forward part.
class MemoryPlan {
 public:
  // `forward_outputs`: the loss, and what else the forward part makes. What is tried is charged to `budget`.
  MemoryPlan(const Graph& root, FactsTable& facts, const LifetimeOptions& options, bool check,
             std::span<Edge* const> forward_outputs, TransientMemory& memory, Budget& budget);

  // All clusters, with what the planned peak loses when each alone is on; `config` decides which are on.
  // Throws as select_cluster_plans.
  std::vector<ClusterPlan> clusters(const MemoryConfig& config);
  // The plan with these nodes run again, by node id.
  Proposal with(const std::vector<bool>& nodes, TransientMemory& memory);
  int64_t natural_bytes() const { return natural_.peak_bytes(); }

 private:
  const Graph& root_;
  FactsTable& facts_;
  LifetimeOptions options_;
  bool check_;
  TransientMemory& memory_;
  Budget& budget_;
  ForwardPart forward_;
  Proposal natural_;
  TurnModel model_;
  uint32_t middle_ = 0;  // the first turn of the natural order behind the forward part
};

}  // namespace plimsoll
