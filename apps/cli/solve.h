#pragma once

#include <plimsoll/model.h>

#include <string>

#include "inputs.h"

namespace plimsoll::cli {

// The largest size of `symbol` whose plan fits `limit_bytes`; other symbols as `inputs` has them. `model`
// must have no limit of its own. Throws kBudgetExceeded if not even 1 fits, kInvalidArgument if the model has
// no such symbol or other sizes are open.
int64_t largest_dim(const Model& model, Inputs inputs, const std::string& symbol, int64_t limit_bytes);

}  // namespace plimsoll::cli
