#include "plimsoll/env.h"

#include <hwy/highway.h>

#include "base/fail.h"
#include "runtime/env_impl.h"

namespace plimsoll {
namespace {

struct Level {
  const char* name;
  int64_t targets;  // this level and all below it
};

// From the most to the least; the names are the same on every machine.
const Level kLevels[] = {
    {"avx512", HWY_AVX3 | HWY_AVX3_DL | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3},
    {"avx2", HWY_AVX2 | HWY_SSE4 | HWY_SSSE3},
    {"sse4", HWY_SSE4 | HWY_SSSE3},
};

// What this machine has and the kernels were compiled for.
int64_t usable_targets() {
  return hwy::SupportedTargets() & HWY_TARGETS;
}

}  // namespace

Env::Env(const EnvOptions& options) : impl_(std::make_shared<Impl>(options.memory_limit_bytes)) {
  if (options.memory_limit_bytes < 0)
    fail(ErrorCode::kInvalidArgument, "memory limit: expected 0 or more bytes, found {}",
         options.memory_limit_bytes);
  if (options.instruction_set.empty()) return;
  for (const Level& level : kLevels) {
    if (options.instruction_set != level.name) continue;
    hwy::SetSupportedTargetsForTest(0);
    const int64_t usable = usable_targets() & level.targets;
    if (usable == 0)
      fail(ErrorCode::kInvalidArgument, "instruction set '{}' is not available on this machine", level.name);
    hwy::SetSupportedTargetsForTest(usable);
    return;
  }
  fail(ErrorCode::kInvalidArgument, "instruction set '{}': expected sse4, avx2 or avx512",
       options.instruction_set);
}

MemoryReport Env::GetMemoryReport() const {
  return impl_->budget.report();
}

std::string Env::GetInstructionSet() {
  const int64_t targets = usable_targets();
  if ((targets & HWY_AVX3) != 0) return "avx512";
  if ((targets & HWY_AVX2) != 0) return "avx2";
  if ((targets & HWY_SSE4) != 0) return "sse4";
  if ((targets & HWY_NEON) != 0) return "neon";
  return "scalar";
}

}  // namespace plimsoll
