// The memory optimizer of training as ONNX Runtime describes it: clusters of forward nodes whose results are
// made again in the backward part instead of being kept (docs/recompute.md). It finds and names them; what a
// plan really saves, the planner tells.
#pragma once

#include <functional>

#include "graph/infer.h"
#include "plimsoll/gradient.h"
#include "train/forward.h"
#include "train/memory_config.h"

namespace plimsoll {

// One occurrence: a node whose results are stashed, with what must run again before it.
struct ClusterOccurrence {
  const Node* node = nullptr;
  std::vector<const Node*> nodes;  // in their order; `node` is the last
  int64_t stashed_bytes = 0;       // of all results that the backward part reads
  int64_t kept_bytes = 0;          // what is kept instead: 0 in a plain plan
  int layer = kNoLayer;
  bool on = false;
  size_t readers = 0;  // backward nodes that read the results
};

// A row of the table: all occurrences of a cluster with one strategy, in topological order.
struct ClusterPlan {
  std::string cluster;
  RecomputeStrategy strategy = RecomputeStrategy::kRecompute;
  std::vector<ClusterOccurrence> occurrences;
  int64_t requested = 0;            // the count asked for; 0: off
  std::string symbolic_bytes;       // stashed minus kept, of all occurrences
  int64_t planned_saved_bytes = 0;  // what the planned peak loses with this row alone: set by whoever plans
  int64_t saved_bytes() const;      // the sum of stashed bytes minus what is kept instead
  bool is_on() const;
  std::string config() const;  // "Cluster:Strategy:Count"
};

// All plans of a graph with gradients, those that save the most first; none is on. `concrete` has the facts
// of the shape that bytes are told for; facts on the edges give the expressions.
std::vector<ClusterPlan> find_cluster_plans(const Graph& graph, const ForwardPart& forward,
                                            const Layers& layers, const FactsTable& concrete,
                                            MemoryProbe probe);

// Turns on what the level and the requests ask for. Throws kInvalidArgument naming the plans that there are
// if a request fits none.
void select_cluster_plans(std::vector<ClusterPlan>& plans, const MemoryConfig& config);

// By node id: what runs again with all occurrences that are on, or with all of one plan.
std::vector<bool> nodes_run_again(const std::vector<ClusterPlan>& plans, size_t node_count);
std::vector<bool> nodes_run_again(const ClusterPlan& plan, size_t node_count);

// ONNX Runtime's table, with a column for what the planned peak loses.
std::string memory_table(const std::vector<ClusterPlan>& plans, MemoryLevel level, TableDetail detail);

}  // namespace plimsoll
