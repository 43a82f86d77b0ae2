#include "prepare/proposals.h"

#include <algorithm>

#include "plan/check.h"

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

void check_placement(const plan::Problem& problem, const plan::Placement& placement) {
  const std::vector<std::string> violations = plan::check(problem, placement);
  if (!violations.empty())
    fail(ErrorCode::kInvalidModel, "the plan is wrong (a bug in Plimsoll): {}", violations[0]);
}

void check_bodies(const Lifetimes& lifetimes) {
  for (const auto& [turn, nested] : lifetimes.nested) {
    for (const auto& body : nested.bodies) {
      if (body == nullptr) continue;
      check_placement(body->problem(), *body->placement);
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
  void try_order(const Schedule& order) {
    options_.pieces = options_.reuse;
    Proposal with = analyzed(order);
    if (options_.reuse) {
      options_.pieces = false;
      Proposal without = analyzed(order);
      if (without.most_live_bytes < with.most_live_bytes) with = std::move(without);
    }
    if (best_ && with.most_live_bytes >= best_->peak_bytes()) return;
    place(with);
    if (!best_ || with.peak_bytes() < best_->peak_bytes()) best_ = std::move(with);
  }
  Proposal take_best() { return std::move(*best_); }

 private:
  Proposal analyzed(const Schedule& order) {
    Proposal proposal{analyze(root_, facts_, Schedule(order, memory_.resource()), options_, memory_),
                      {plan::Offsets(memory_.resource()), plan::Offsets(memory_.resource())},
                      0,
                      0};
    find_most_live(proposal);
    return proposal;
  }
  void place(Proposal& proposal) const {
    const plan::Problem problem = proposal.lifetimes.problem();
    proposal.placement = plimsoll::place(problem, options_);
    if (!check_) return;
    check_placement(problem, proposal.placement);
    check_bodies(proposal.lifetimes);
  }

  const Graph& root_;
  FactsTable& facts_;
  LifetimeOptions options_;
  const bool check_;
  TransientMemory& memory_;
  std::optional<Proposal> best_;
};

}  // namespace

Proposal best_proposal(const Graph& root, FactsTable& facts, const LifetimeOptions& options, Effort effort,
                       bool check, TransientMemory& memory) {
  Proposals proposals(root, facts, options, check, memory);
  const Schedule order = file_order(root, memory, options.wanted);
  proposals.try_order(order);
  if (effort == Effort::kThorough && options.reuse && order.size() <= kMostNodesToOrder)
    proposals.try_order(frugal_order(root, facts, order, memory, options.wanted));
  return proposals.take_best();
}

}  // namespace plimsoll
