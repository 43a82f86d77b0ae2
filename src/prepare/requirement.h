// What a session with one model and shape holds at its worst moment, and whether a limit allows it.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "memory/mapping.h"
#include "prepare/shape_plan.h"

namespace plimsoll {

struct Requirement {
  std::array<int64_t, kAccounts> accounts{};  // at the worst moment
  int64_t peak_bytes = 0;
};

// The worst of: reading and rewriting the model, planning the shape, loading the weights, running.
Requirement requirement(const PreparedModel& model, const ShapePlan& shape);
// The same for a session that keeps several plans and one arena for the largest of them, made in this order.
Requirement requirement(const PreparedModel& model, std::span<const std::shared_ptr<ShapePlan>> plans);
// The same with activations at their live bytes.
int64_t lower_bound_bytes(const PreparedModel& model, const ShapePlan& shape);
// Throws kBudgetExceeded naming the node that needs the most and the smallest limit that would do.
[[noreturn]] void refuse(const ShapePlan& shape, int64_t needed_bytes, int64_t limit_bytes);

// Of the planned arena of one run: what is left for it by a limit that `plan`, which needs `needed_bytes`,
// does not fit.
int64_t planned_bytes_within(const PreparedModel& model, const ShapePlan& plan, int64_t needed_bytes,
                             int64_t limit_bytes);

// The smallest arena, then those that are larger by no more than the tables of its plan: fewer turns need
// smaller ones, so that one of them may need less in all. Calls look(most_bytes) for each, with 0 for the
// smallest, until it has what it wants; true if it has.
struct SmallArena {
  bool wanted = false;
  int64_t planned_bytes = 0, memory_bytes = 0;
};
template <typename Look>
bool for_each_small_arena(Look look) {
  SmallArena found = look(0);
  const int64_t smallest = found.planned_bytes;
  int64_t most_bytes = smallest + found.memory_bytes;
  while (!found.wanted && most_bytes > smallest) {
    found = look(most_bytes);
    if (found.planned_bytes > most_bytes) break;  // there was no room to look
    most_bytes = found.planned_bytes - page_bytes();
  }
  return found.wanted;
}

// A plan that fits the limit (0: none): the quick one if it does, else the smallest that runs every node
// once, else the fastest that runs some again (not of a model that can do with less memory otherwise, see
// PreparedModel::spends_memory). Throws kBudgetExceeded if none does. `after_load`: the plan
// is, or will be, made beside the weights.
template <typename PlanType>
std::shared_ptr<PlanType> plan_within(const PreparedModel& model,
                                      const std::vector<std::vector<int64_t>>& shapes, Budget& budget,
                                      int64_t limit_bytes, bool after_load,
                                      const ShapePlan::Wanted& wanted = {}) {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t needed = 0;
  std::shared_ptr<PlanType> plan;
  const auto fits = [&](Effort effort, int64_t most_bytes) {
    plan.reset();  // one at a time is what is told
    plan = std::make_shared<PlanType>(model, shapes, budget, effort, wanted, most_bytes);
    plan->assume_planned_after_load(after_load);
    needed = requirement(model, *plan).peak_bytes;
    least = std::min(least, needed);
    return limit_bytes == 0 || needed <= limit_bytes;
  };
  if (fits(Effort::kQuick, 0) || fits(Effort::kThorough, 0)) return plan;
  if (model.spends_memory()) refuse(*plan, least, limit_bytes);
  // The search for what to run again takes room too: where there is none, the plan without it is the answer.
  const auto fits_again = [&](int64_t most_bytes) {
    try {
      return fits(Effort::kRecompute, most_bytes);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBudgetExceeded) throw;
      return fits(Effort::kThorough, 0);
    }
  };
  // A plan with more turns is larger itself: a second try leaves room for it.
  for (int tries = 0; tries < 2; ++tries) {
    const int64_t most_bytes = planned_bytes_within(model, *plan, needed, limit_bytes);
    if (most_bytes > 0 && fits_again(most_bytes)) return plan;
  }
  const bool fitted = for_each_small_arena([&](int64_t most_bytes) {
    const bool fits_now = fits_again(most_bytes);
    return SmallArena{fits_now, plan->planned_bytes(), plan->memory_bytes()};
  });
  if (fitted) return plan;
  refuse(*plan, least, limit_bytes);
}

// A budget without its own limit, for as long as this lives.
class LimitLifted {
 public:
  explicit LimitLifted(Budget& budget) : budget_(budget), limit_(budget.limit_bytes()) {
    budget.set_limit_bytes(0);
  }
  LimitLifted(const LimitLifted&) = delete;
  LimitLifted& operator=(const LimitLifted&) = delete;
  ~LimitLifted() { budget_.set_limit_bytes(limit_); }

 private:
  Budget& budget_;
  int64_t limit_;
};

// Plans of several runs of the same shapes that a session keeps side by side, made in this order; the line is
// for all of them together. Otherwise as plan_within, before the weights are loaded. Without `recompute` no
// node runs twice.
template <typename PlanType>
std::vector<std::shared_ptr<PlanType>> plan_together(const PreparedModel& model,
                                                     const std::vector<std::vector<int64_t>>& shapes,
                                                     std::span<const ShapePlan::Wanted> runs, Budget& budget,
                                                     int64_t limit_bytes, bool recompute = true) {
  std::vector<std::shared_ptr<PlanType>> plans;
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t needed = 0;
  const auto fits = [&](Effort effort, int64_t most_bytes) {
    plans.clear();
    for (const ShapePlan::Wanted& wanted : runs)
      plans.push_back(std::make_shared<PlanType>(model, shapes, budget, effort, wanted, most_bytes));
    const std::vector<std::shared_ptr<ShapePlan>> all(plans.begin(), plans.end());
    needed = requirement(model, all).peak_bytes;
    least = std::min(least, needed);
    return limit_bytes == 0 || needed <= limit_bytes;
  };
  if (fits(Effort::kQuick, 0) || fits(Effort::kThorough, 0)) return plans;
  for (int tries = 0; recompute && tries < 2; ++tries) {
    int64_t planned = 0;  // one arena serves all
    for (const auto& plan : plans) planned = std::max(planned, plan->planned_bytes());
    const int64_t most_bytes = (planned - (needed - limit_bytes)) / page_bytes() * page_bytes();
    if (most_bytes > 0 && fits(Effort::kRecompute, most_bytes)) return plans;
  }
  if (recompute && fits(Effort::kRecompute, 0)) return plans;
  // The limit may not have allowed the search either: what would do is looked for without it.
  const LimitLifted lifted(budget);
  if (recompute && fits(Effort::kRecompute, 0)) return plans;
  refuse(*plans[0], least, limit_bytes);
}

}  // namespace plimsoll
