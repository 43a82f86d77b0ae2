#include "prepare/stash_choice.h"

#include <algorithm>

#include "prepare/concrete_facts.h"
#include "prepare/proposals.h"
#include "prepare/turn_model.h"

namespace plimsoll {
namespace {

constexpr int64_t kFewestBytes = 4096;

// The turns between the last reader of the forward part and the first one behind, exclusively, in which
// rounding leaves half of the bytes.
struct Gap {
  size_t from = 0, to = 0;
  int64_t saved_bytes = 0;
  bool taken = false;

  bool has(size_t turn) const { return from <= turn && turn < to; }
};

std::vector<Gap> gaps_of(std::span<const Stash> stashes, const TurnModel& model, const FactsTable& facts,
                         const Graph& graph) {
  std::vector<size_t> turn_of(graph.node_count(), 0);
  for (size_t t = 0; t < model.order.size(); ++t) turn_of[model.nodes[model.order[t]].node->id] = t;
  std::vector<Gap> gaps;
  for (const Stash& stash : stashes) {
    Gap gap{turn_of[stash.edge->producer->id], model.order.size(), 0, false};
    for (const Node* node : stash.forward) gap.from = std::max(gap.from, turn_of[node->id]);
    for (const Node* node : stash.backward) gap.to = std::min(gap.to, turn_of[node->id]);
    ++gap.from;
    const Facts& known = facts[stash.edge];
    const int64_t bytes = known.is_concrete() && is_static(known) ? value_bytes(known).value() : 0;
    if (bytes >= kFewestBytes) gap.saved_bytes = bytes / 2;
    gaps.push_back(gap);
  }
  return gaps;
}

// Takes all that are open where the most is alive; false if none is.
bool take_at_peak(std::vector<Gap>& gaps, std::vector<int64_t>& live) {
  const size_t peak = static_cast<size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  bool took = false;
  for (Gap& gap : gaps) {
    if (gap.taken || gap.saved_bytes == 0 || !gap.has(peak)) continue;
    gap.taken = took = true;
    for (size_t t = gap.from; t < gap.to; ++t) live[t] -= gap.saved_bytes;
  }
  return took;
}

}  // namespace

std::vector<Stash> worth_rounding(const Graph& graph, std::vector<Stash> stashes, const StepShape& step) {
  Budget& budget = graph.arena().budget();
  TransientMemory memory(budget);
  DimPool pool(memory.arena());
  FactsTable facts = concrete_facts(graph, step.shapes, memory.arena(), pool);
  LifetimeOptions options;
  options.threads = step.threads;
  options.wanted = step.wanted;
  options.updated = step.updated;
  const Proposal natural = best_proposal(graph, facts, options, Effort::kQuick, false, memory, budget);
  const TurnModel model(natural.lifetimes, facts, options, memory);
  LiveBytes bytes(model, memory.resource());
  bytes.simulate(model.order);
  std::vector<int64_t> live(bytes.live().begin(), bytes.live().end());
  std::vector<Gap> gaps = gaps_of(stashes, model, facts, graph);
  while (!live.empty() && take_at_peak(gaps, live)) {
  }
  std::vector<Stash> worth;
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].taken) worth.push_back(std::move(stashes[i]));
  }
  return worth;
}

}  // namespace plimsoll
