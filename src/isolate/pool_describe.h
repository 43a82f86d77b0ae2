// How a worker's end is told.
#pragma once

#include <string>

#include "plimsoll/isolate.h"

namespace plimsoll {

std::string describe_end(const Receipt& receipt);  // "exited with code 3", ...
// The outcome of the job that a worker had when it ended so, without an answer.
Outcome::Kind kind_of_end(const Receipt& receipt) noexcept;

}  // namespace plimsoll
