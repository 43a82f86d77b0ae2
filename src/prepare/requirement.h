// What a session with one model and shape holds at its worst moment, and whether a limit allows it.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

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

// A plan that fits the limit (0: none): the quick one if it does, else the smallest. Throws kBudgetExceeded
// if none does. `after_load`: the plan is, or will be, made beside the weights.
template <typename PlanType>
std::shared_ptr<PlanType> plan_within(const PreparedModel& model,
                                      const std::vector<std::vector<int64_t>>& shapes, Budget& budget,
                                      int64_t limit_bytes, bool after_load,
                                      const ShapePlan::Wanted& wanted = {}) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Effort effort : {Effort::kQuick, Effort::kThorough}) {
    auto plan = std::make_shared<PlanType>(model, shapes, budget, effort, wanted);
    plan->assume_planned_after_load(after_load);
    const int64_t needed = requirement(model, *plan).peak_bytes;
    if (limit_bytes == 0 || needed <= limit_bytes) return plan;
    least = std::min(least, needed);
    if (effort == Effort::kThorough) refuse(*plan, least, limit_bytes);
  }
  return nullptr;
}

// Plans of several runs of the same shapes that a session keeps side by side, made in this order; the line is
// for all of them together. Otherwise as plan_within, before the weights are loaded.
template <typename PlanType>
std::vector<std::shared_ptr<PlanType>> plan_together(const PreparedModel& model,
                                                     const std::vector<std::vector<int64_t>>& shapes,
                                                     std::span<const ShapePlan::Wanted> runs, Budget& budget,
                                                     int64_t limit_bytes) {
  std::vector<std::shared_ptr<PlanType>> plans;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Effort effort : {Effort::kQuick, Effort::kThorough}) {
    plans.clear();
    for (const ShapePlan::Wanted& wanted : runs)
      plans.push_back(std::make_shared<PlanType>(model, shapes, budget, effort, wanted));
    const std::vector<std::shared_ptr<ShapePlan>> all(plans.begin(), plans.end());
    const int64_t needed = requirement(model, all).peak_bytes;
    least = std::min(least, needed);
    if (limit_bytes == 0 || needed <= limit_bytes) break;
    if (effort == Effort::kThorough) refuse(*plans[0], least, limit_bytes);
  }
  return plans;
}

}  // namespace plimsoll
