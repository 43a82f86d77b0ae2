// A plan as the public classes tell it.
#pragma once

#include "plimsoll/plan.h"
#include "prepare/prepared_model.h"

namespace plimsoll {

// For these shapes of a prepared model, with the formula; the formula alone if some shape is missing. Nothing
// is kept. Throws kInvalidArgument, and kBudgetExceeded if no plan is within the limit (0: none). `least`:
// the same model as it is prepared where memory is short; null if there is no other way.
Plan make_plan(const PreparedModel& model, const Shapes& shapes, Budget& budget, int64_t limit_bytes,
               bool told_at_opening, const PreparedModel* least = nullptr);

// The model itself tells the shapes of all its inputs.
bool known_at_opening(const PreparedModel& model);

}  // namespace plimsoll
