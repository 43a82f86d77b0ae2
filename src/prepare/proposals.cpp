#include "prepare/proposals.h"

#include <algorithm>

#include "plan/check.h"
#include "prepare/turn_order.h"
#include "prepare/updates.h"

namespace plimsoll {
namespace {

constexpr size_t kMostNodesToOrder =
    10'000;  // the frugal order looks at all nodes that are ready, every time

void find_most_live(Proposal& proposal) {
  const auto live = proposal.lifetimes.live_bytes();
  for (size_t s = 0; s < live.size(); ++s) {
    if (live[s].value() <= proposal.most_live_bytes) continue;
    proposal.most_live_bytes = live[s].value();
    proposal.peak_step = s;
  }
}

void refuse(const std::vector<std::string>& violations) {
  if (!violations.empty())
    fail(ErrorCode::kInvalidModel, "the plan is wrong (a bug in Plimsoll): {}", violations[0]);
}

void check_bodies(const Lifetimes& lifetimes) {
  for (const auto& [turn, nested] : lifetimes.nested) {
    for (const auto& body : nested.bodies) {
      if (body == nullptr) continue;
      refuse(plan::check(body->problem(), *body->placement));
      check_bodies(*body);
    }
  }
}

class Proposals {
 public:
  Proposals(const Graph& root, FactsTable& facts, const LifetimeOptions& options, bool check,
            TransientMemory& memory)
      : root_(root), facts_(facts), options_(options), check_(check), memory_(memory) {}

  // Writing pieces of a Concat in place saves a copy but keeps the whole alive for longer: the smaller one
  // counts.
  void try_order(const Schedule& given) {
    const Schedule order = options_.updated.empty() ? Schedule(given, memory_.resource())
                                                    : settle_updates(root_, facts_, given, options_, memory_);
    options_.pieces = options_.reuse;
    Proposal with = analyzed(order);
    if (with.lifetimes.has_pieces) {
      options_.pieces = false;
      Proposal without = analyzed(order);
      if (without.most_live_bytes < with.most_live_bytes) with = std::move(without);
    }
    if (best_ && with.most_live_bytes >= best_->peak_bytes()) return;
    place(with);
    if (!best_ || with.peak_bytes() < best_->peak_bytes()) best_ = std::move(with);
  }
  Proposal take_best() { return std::move(*best_); }
  const Proposal& best() const { return *best_; }

 private:
  Proposal analyzed(const Schedule& order) {
    Proposal proposal{analyze(root_, facts_, Schedule(order, memory_.resource()), options_, memory_),
                      {plan::Offsets(memory_.resource()), plan::Offsets(memory_.resource())},
                      0,
                      0,
                      {}};
    find_most_live(proposal);
    return proposal;
  }
  void place(Proposal& proposal) const {
    const plan::Problem problem = proposal.lifetimes.problem();
    proposal.placement = plimsoll::place(problem, options_);
    if (!check_) return;
    refuse(plan::check(problem, proposal.placement));
    check_bodies(proposal.lifetimes);
    refuse(check_updates(proposal.lifetimes));
  }

  const Graph& root_;
  FactsTable& facts_;
  LifetimeOptions options_;
  const bool check_;
  TransientMemory& memory_;
  std::optional<Proposal> best_;
};

Proposal best_order(const Graph& root, FactsTable& facts, const LifetimeOptions& options, Effort effort,
                    bool check, TransientMemory& memory) {
  Proposals proposals(root, facts, options, check, memory);
  const Schedule order = file_order(root, memory, options.wanted);
  proposals.try_order(order);
  if (effort != Effort::kQuick && options.reuse && order.size() <= kMostNodesToOrder)
    proposals.try_order(frugal_order(root, facts, order, memory, options.wanted));
  if (effort != Effort::kQuick && options.reuse) {
    const TurnModel model(proposals.best().lifetimes, facts, options, memory);
    proposals.try_order(model.schedule(hurried(model, model.order, memory.resource()), memory));
  }
  return proposals.take_best();
}

// Whether running nodes again could help: no plan is below what one node needs by itself.
bool can_help(const TurnModel& model, int64_t peak_bytes) {
  int64_t most = 0;
  for (uint32_t n = 0; n < model.nodes.size(); ++n) {
    int64_t bytes = model.nodes[n].scratch_bytes;
    if (model.nodes[n].free) continue;
    for (const uint32_t edge : model.reads(n))
      bytes += model.edges[edge].callers ? 0 : model.edges[edge].bytes;
    most = std::max(most, bytes);
  }
  return peak_bytes > most + most / 16;
}

// Fastest first, each placed for real in memory of its own until one fits.
Proposal recomputed(const Graph& root, FactsTable& facts, const LifetimeOptions& options, bool check,
                    TransientMemory& memory, Budget& budget, int64_t most_bytes, Proposal& natural) {
  const TurnModel model(natural.lifetimes, facts, options, memory);
  if (!can_help(model, natural.peak_bytes())) return std::move(natural);
  const RecomputeFront front(model, hurried(model, model.order, memory.resource()), memory);
  const auto planned = [&](const RecomputeFront::Point& point, TransientMemory& in) {
    return proposal_of(root, facts, options, model.schedule(point.turns, in), check, in);
  };
  const RecomputeFront::Point* chosen = nullptr;
  int64_t smallest = natural.peak_bytes();
  for (const RecomputeFront::Point& point : front.points()) {
    if (point.live_bytes > most_bytes && &point != &front.points().back()) continue;
    TransientMemory trial(budget);
    const int64_t peak = planned(point, trial).peak_bytes();
    if (peak < smallest) smallest = peak, chosen = &point;
    if (peak <= most_bytes) break;
  }
  if (chosen == nullptr) return std::move(natural);
  Proposal result = planned(*chosen, memory);
  result.recomputation = recomputation_of(model, result.lifetimes.schedule);
  result.recomputation.peak_bytes = result.peak_bytes();
  result.recomputation.saved_bytes = natural.peak_bytes() - result.peak_bytes();
  return result;
}

}  // namespace

Proposal proposal_of(const Graph& root, FactsTable& facts, const LifetimeOptions& options,
                     const Schedule& schedule, bool check, TransientMemory& memory) {
  Proposals proposals(root, facts, options, check, memory);
  proposals.try_order(schedule);
  return proposals.take_best();
}

Proposal best_proposal(const Graph& root, FactsTable& facts, const LifetimeOptions& options, Effort effort,
                       bool check, TransientMemory& memory, Budget& budget, int64_t most_bytes) {
  Proposal natural = best_order(root, facts, options, effort, check, memory);
  if (effort != Effort::kRecompute || !options.reuse || natural.peak_bytes() <= most_bytes) return natural;
  try {
    return recomputed(root, facts, options, check, memory, budget, most_bytes, natural);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBudgetExceeded) throw;
    natural.recomputation.found_no_room = true;
    return natural;
  }
}

}  // namespace plimsoll
