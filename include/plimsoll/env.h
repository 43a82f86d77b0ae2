// Env: what all sessions of a process share: one budget above theirs, the instruction set.
//
// A cheap handle; copies share the same state, which lives as long as the last Env or Session that
// uses it. Any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plimsoll/memory_report.h"

namespace plimsoll {

struct EnvOptions {
  int64_t memory_limit_bytes = 0;  // a line over all sessions together; 0: none
  // The most that kernels may use: "sse4", "avx2", "avx512" or "" for the best this machine has. It
  // holds for the whole process, because weights are packed for it: another one while a Session lives
  // is an Error (kInvalidArgument).
  std::string instruction_set;
};

class Env {
 public:
  explicit Env(const EnvOptions& options = {});
  MemoryReport GetMemoryReport() const;
  // The instruction set in use: "sse4", "avx2", "avx512", "neon" or "scalar".
  static std::string GetInstructionSet();

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace plimsoll
