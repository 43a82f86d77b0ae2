#include "runtime/make_plan.h"

#include "plimsoll/env.h"
#include "runtime/describe.h"

namespace plimsoll {

bool known_at_opening(const PreparedModel& model) {
  return model.graph().inputs.empty() || !complete_shapes(model.graph(), {}, true).empty();
}

Plan make_plan(const PreparedModel& model, const Shapes& shapes, Budget& budget, int64_t limit_bytes,
               bool told_at_opening, const PreparedModel* least) {
  const auto complete = complete_shapes(model.graph(), shapes, true);
  Plan plan;
  if (!complete.empty() || model.graph().inputs.empty()) {
    const bool after_load = !known_at_opening(model) && !told_at_opening;
    const auto shape = plan_within<ShapePlan>(model, complete, budget, limit_bytes, after_load);
    plan = describe_plan(model, *shape);
    if (plan.minimum_limit_bytes > 0) {
      const auto meet = [&](const PreparedModel& candidate, Effort effort, int64_t most_bytes) {
        ShapePlan smallest(candidate, complete, budget, effort, {}, most_bytes);
        smallest.assume_planned_after_load(after_load);
        plan.minimum_limit_bytes =
            std::min(plan.minimum_limit_bytes, requirement(candidate, smallest).peak_bytes);
        return SmallArena{false, smallest.planned_bytes(), smallest.memory_bytes()};
      };
      for (const PreparedModel* candidate : {&model, least}) {
        if (candidate == nullptr) continue;
        meet(*candidate, Effort::kThorough, 0);
        if (candidate->spends_memory()) continue;  // it gives that up first, see plan_within
        for_each_small_arena(
            [&](int64_t most_bytes) { return meet(*candidate, Effort::kRecompute, most_bytes); });
      }
    }
  }
  const Formula formula = make_formula(model);
  plan.formula = formula.text;
  plan.symbols = formula.symbols;
  if (!plan.concrete) plan.depends_on_data = formula.depends_on_data;
  plan.threads = model.options().threads;
  plan.instruction_set = Env::GetInstructionSet();
  return plan;
}

}  // namespace plimsoll
