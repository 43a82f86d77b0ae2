// What a session with one model and shape holds at its worst moment, and whether a limit allows it.
#pragma once

#include <array>
#include <memory>

#include "prepare/shape_plan.h"

namespace plimsoll {

struct Requirement {
  std::array<int64_t, kAccounts> accounts{};  // at the worst moment
  int64_t peak_bytes = 0;
};

// The worst of: reading and rewriting the model, planning the shape, loading the weights, running.
Requirement requirement(const PreparedModel& model, const ShapePlan& shape);
// The same with activations at their live bytes.
int64_t lower_bound_bytes(const PreparedModel& model, const ShapePlan& shape);
// Throws kBudgetExceeded naming the node that needs the most and the smallest limit that would do.
void check_fits(const PreparedModel& model, const ShapePlan& shape, int64_t limit_bytes);

// A plan that fits the limit: the quick one if it does, else the smallest. Throws kBudgetExceeded if none
// does.
template <typename PlanType>
std::shared_ptr<PlanType> plan_within(const PreparedModel& model,
                                      const std::vector<std::vector<int64_t>>& shapes, Budget& budget,
                                      int64_t limit_bytes) {
  auto plan = std::make_shared<PlanType>(model, shapes, budget, Effort::kQuick);
  if (limit_bytes == 0 || requirement(model, *plan).peak_bytes <= limit_bytes) return plan;
  plan.reset();
  plan = std::make_shared<PlanType>(model, shapes, budget, Effort::kThorough);
  check_fits(model, *plan, limit_bytes);
  return plan;
}

}  // namespace plimsoll
