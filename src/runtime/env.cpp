#include "plimsoll/env.h"

#include <fmt/core.h>
#include <hwy/highway.h>

#include <algorithm>

#include "base/fail.h"
#include "kernels/instructions.h"
#include "plimsoll/session_options.h"
#include "runtime/allocator_impl.h"
#include "runtime/env_impl.h"

namespace plimsoll {
namespace {

struct Level {
  const char* name;
  int64_t targets;  // this level and all below it
};

constexpr int64_t kSse4 = HWY_SSE4 | HWY_SSSE3, kAvx2 = HWY_AVX2 | kSse4, kAvx512 = HWY_AVX3 | kAvx2;

// From the most to the least; the names are the same on every machine. Weights are packed in another way for
// each.
const Level kLevels[] = {
    {"amx", kAvx512 | kernels::kOwnInstructions},
    {"avx512", kAvx512 | kernels::kAvxVnni | kernels::kAvx512Vnni | kernels::kAvx512Bf16},
    {"avx512f", kAvx512},
    {"avx_vnni", kAvx2 | kernels::kAvxVnni},
    {"avx2", kAvx2},
    {"sse4", kSse4},
    {"neon", HWY_NEON},
};

// What this machine has and the kernels were compiled for.
int64_t usable_targets() {
  constexpr int64_t kNeedAvx512 = kernels::kOwnInstructions & ~kernels::kAvxVnni;
  const int64_t targets = hwy::SupportedTargets() & (HWY_TARGETS | kernels::kOwnInstructions);
  return (targets & HWY_AVX3) != 0 ? targets : targets & ~kNeedAvx512;
}

const char* name_of(int64_t targets) {
  if ((targets & HWY_AVX3) != 0) {
    if ((targets & kernels::kAmxInt8) != 0) return "amx";
    return (targets & kernels::kAvx512Vnni) != 0 ? "avx512" : "avx512f";
  }
  if ((targets & HWY_AVX2) != 0) return (targets & kernels::kAvxVnni) != 0 ? "avx_vnni" : "avx2";
  if ((targets & HWY_SSE4) != 0) return "sse4";
  if ((targets & HWY_NEON) != 0) return "neon";
  return "scalar";
}

}  // namespace

namespace {

void set_instruction_set(const std::string& name) {
  const auto* level = std::find_if(std::begin(kLevels), std::end(kLevels),
                                   [&](const Level& candidate) { return candidate.name == name; });
  if (level == std::end(kLevels))
    fail(ErrorCode::kInvalidArgument,
         "instruction set '{}': expected sse4, avx2, avx_vnni, avx512f, avx512, amx or neon", name);
  const std::lock_guard lock(LiveSession::mutex());
  const int64_t before = usable_targets();
  hwy::SetSupportedTargetsForTest(0);
  const int64_t usable = usable_targets() & level->targets;
  const auto refuse = [&](const std::string& problem) {
    hwy::SetSupportedTargetsForTest(before);
    fail(ErrorCode::kInvalidArgument, "instruction set '{}': {}", name, problem);
  };
  if ((usable & HWY_TARGETS) == 0)
    refuse("not available on this machine, or not in this build of the kernels");
  // Weights are packed for one set, and kernels are chosen anew in every run.
  if (usable != before && LiveSession::count() > 0)
    refuse(
        fmt::format("expected no Session, found {} whose weights are packed for {}; set it before the first",
                    LiveSession::count(), name_of(before)));
  hwy::SetSupportedTargetsForTest(usable);
}

}  // namespace

Env::Env(const EnvOptions& options) : impl_(std::make_shared<Impl>(options.memory_limit_bytes)) {
  if (options.memory_limit_bytes < 0)
    fail(ErrorCode::kInvalidArgument, "memory limit: expected 0 or more bytes, found {}",
         options.memory_limit_bytes);
  if (!options.instruction_set.empty()) set_instruction_set(options.instruction_set);
  impl_->log_severity_level = options.log_severity_level;
  impl_->log_id = options.log_id;
  // What the arena of all sessions has idle makes room like what each of them keeps.
  impl_->idle.add([impl = impl_.get()] {
    std::shared_ptr<BlockArena> arena;
    {
      const std::lock_guard lock(impl->mutex);
      arena = impl->arena;
    }
    if (arena != nullptr) arena->shrink(true);
  });
}

int Env::GetLogSeverityLevel() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->log_severity_level;
}
void Env::SetLogSeverityLevel(int level) {
  const std::lock_guard lock(impl_->mutex);
  impl_->log_severity_level = level;
}
const std::string& Env::GetLogId() const {
  return impl_->log_id;
}

void Env::CreateAndRegisterAllocator(const MemoryInfo& info, const ArenaCfg& settings) {
  check_cpu(info);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->arena != nullptr)
    fail(ErrorCode::kInvalidArgument, "an allocator for Cpu is registered already; unregister it first");
  impl_->arena = make_arena(settings, impl_->shared_budget, impl_->budget);
}

void Env::CreateAndRegisterAllocatorV2(const std::string& provider, const MemoryInfo& info,
                                       const std::map<std::string, std::string>& options,
                                       const ArenaCfg& settings) {
  SessionOptions().AppendExecutionProvider(provider, options);  // throws of what is not here
  CreateAndRegisterAllocator(info, options.empty() ? settings : ArenaCfg(options));
}

void Env::UnregisterAllocator(const MemoryInfo& info) {
  check_cpu(info);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->arena == nullptr) fail(ErrorCode::kInvalidArgument, "no allocator for Cpu is registered");
  impl_->arena.reset();
}

std::optional<Allocator> Env::GetSharedAllocator(const MemoryInfo& info) const {
  check_cpu(info);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->arena == nullptr) return std::nullopt;
  auto shared = std::make_shared<Allocator::Impl>();
  shared->arena = impl_->arena;
  return Allocator(std::move(shared));
}

MemoryReport Env::GetMemoryReport() const {
  return impl_->budget.report();
}

std::string Env::GetInstructionSet() {
  return name_of(usable_targets());
}

}  // namespace plimsoll
