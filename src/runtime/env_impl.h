#pragma once

#include <atomic>

#include "memory/budget.h"
#include "plimsoll/env.h"

namespace plimsoll {

struct Env::Impl {
  explicit Impl(int64_t limit_bytes) : budget("process", limit_bytes) {}
  Budget budget;
  std::atomic<bool> team_busy{false};  // one run at a time holds the OpenMP team
};

}  // namespace plimsoll
