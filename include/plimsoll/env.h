// Env: what all sessions of a process share: one budget above theirs, the instruction set.
//
// A cheap handle; copies share the same state, which lives as long as the last Env or Session that
// uses it. Any thread may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "plimsoll/allocator.h"
#include "plimsoll/memory_report.h"

namespace plimsoll {

struct EnvOptions {
  int64_t memory_limit_bytes = 0;  // a line over all sessions together; 0: none
  // The most that kernels may use: "sse4", "avx2", "avx_vnni" (AVX2 and AVX-VNNI), "avx512f" (AVX-512 without
  // VNNI), "avx512" (with it, where the machine has it), "amx" (AMX-INT8 besides), "neon" (on Arm), or ""
  // for the best this machine has. It holds for the whole process, because weights are packed for it: another
  // one while a Session lives is an Error (kInvalidArgument).
  std::string instruction_set;
  // Kept for whoever asks: nothing is logged.
  int log_severity_level = 2;  // of ONNX Runtime, 0 (verbose) to 4 (fatal)
  std::string log_id;
};

class Env {
 public:
  explicit Env(const EnvOptions& options = {});
  // ONNX Runtime's: a level by its number, and a name for the log.
  template <typename Level>
  requires(std::is_enum_v<Level>) explicit Env(Level level, const char* log_id = "")
      : Env(EnvOptions{0, "", static_cast<int>(level), log_id}) {}

  MemoryReport GetMemoryReport() const;
  int GetLogSeverityLevel() const;
  void SetLogSeverityLevel(int level);
  const std::string& GetLogId() const;

  // An arena that sessions share which have SessionOptions::use_env_allocators
  // ("session.use_env_allocators"). It is charged to this Env's budget alone: max_mem is its own line, a
  // session's limit does not count it. Throws kInvalidArgument if there is one already, or of memory other
  // than "Cpu".
  void CreateAndRegisterAllocator(const MemoryInfo& info, const ArenaCfg& settings);
  void CreateAndRegisterAllocatorV2(const std::string& provider, const MemoryInfo& info,
                                    const std::map<std::string, std::string>& options,
                                    const ArenaCfg& settings);
  // Sessions that have it keep it. Throws kInvalidArgument if there is none.
  void UnregisterAllocator(const MemoryInfo& info);
  std::optional<Allocator> GetSharedAllocator(const MemoryInfo& info) const;
  // The instruction set in use: one of EnvOptions::instruction_set, or "scalar".
  static std::string GetInstructionSet();

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace plimsoll
