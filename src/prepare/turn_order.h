// Orders of turns that keep less alive than the one they start from.
#pragma once

#include "prepare/turn_model.h"

namespace plimsoll {

// What turns much into little (the gradient of a weight, a reduction), and what is made of that alone, runs
// as soon as it can, so that what it reads is needed no longer than by others.
Turns hurried(const TurnModel& model, std::span<const uint32_t> order, std::pmr::memory_resource* memory);

}  // namespace plimsoll
