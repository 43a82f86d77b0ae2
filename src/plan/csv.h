// Placement problems as text, one buffer per row, in minimalloc's format:
//
//   id,lower,upper,size
//   conv1,0,3,4096
//
// The header names the columns, in any order. `alignment` (1 if absent) and `offset` (a pin; may be empty)
// are optional. Lifetimes are half-open. There is one memory space and no capacity.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/placement.h"

namespace plimsoll::plan {

struct NamedProblem {
  Problem problem;
  std::vector<std::string> ids;  // one per buffer, each another text without a comma
};

// Throws Error(kInvalidArgument) naming the line and the column that is wrong. The result is valid
// (validate).
NamedProblem parse_csv(std::string_view text);

// The rows that parse_csv reads, in the same order, with each buffer's offset in the placement.
std::string format_csv(const NamedProblem& named, const Placement& placement);

}  // namespace plimsoll::plan
