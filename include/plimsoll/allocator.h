// Allocators: the memory that a run does not plan, and where it comes from.
//
// A plan has an offset for everything whose size is known. What is left (values whose shape depends on data,
// outputs that nobody bound, tensors made by the caller for staging) comes straight from the operating system
// and goes straight back, unless SessionOptions::arena or an allocator registered with the Env says that it
// shall come from an arena, which keeps what it has for the next run. docs/arenas.md tells what each setting
// costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

namespace plimsoll {

class Session;

// ONNX Runtime's numbers.
enum class AllocatorType { kInvalid = -1, kDevice = 0, kArena = 1, kReadOnly = 2 };
enum class MemoryType { kCpuInput = -2, kCpuOutput = -1, kDefault = 0 };

// Which memory: there is only "Cpu" here, other names are Errors where memory is wanted of them.
class MemoryInfo {
 public:
  explicit MemoryInfo(std::nullptr_t) {}
  MemoryInfo(std::string name, AllocatorType type, int device_id = 0,
             MemoryType memory_type = MemoryType::kDefault)
      : name_(std::move(name)), type_(type), device_id_(device_id), memory_type_(memory_type) {}
  // With the enumerations of plimsoll/cxx_api.h, or any that have the same numbers.
  template <typename A, typename M>
  requires(std::is_enum_v<A>&& std::is_enum_v<M>)
      MemoryInfo(std::string name, A type, int device_id, M memory_type)
      : MemoryInfo(std::move(name), static_cast<AllocatorType>(type), device_id,
                   static_cast<MemoryType>(memory_type)) {}
  template <typename A, typename M>
  requires(std::is_enum_v<A>&& std::is_enum_v<M>) static MemoryInfo CreateCpu(A type, M memory_type) {
    return MemoryInfo("Cpu", type, 0, memory_type);
  }

  const std::string& GetAllocatorName() const { return name_; }
  AllocatorType GetAllocatorType() const { return type_; }
  int GetDeviceId() const { return device_id_; }
  MemoryType GetMemoryType() const { return memory_type_; }
  bool IsCpu() const { return name_ == "Cpu"; }
  bool operator==(const MemoryInfo&) const = default;

 private:
  std::string name_ = "Cpu";
  AllocatorType type_ = AllocatorType::kDevice;
  int device_id_ = 0;
  MemoryType memory_type_ = MemoryType::kDefault;
};

// Throws kInvalidArgument of memory other than "Cpu".
void check_cpu(const MemoryInfo& info);

// How an arena grows. Names and numbers are ONNX Runtime's; -1 (of max_mem 0) is the default.
struct ArenaCfg {
  ArenaCfg() = default;
  ArenaCfg(size_t most, int strategy, int first_region, int most_dead)
      : max_mem(static_cast<int64_t>(most)),
        arena_extend_strategy(strategy),
        initial_chunk_size_bytes(first_region),
        max_dead_bytes_per_chunk(most_dead) {}
  // From names and values as text; "gpu_mem_limit" is max_mem, and sizes may have units. Throws
  // kInvalidArgument.
  explicit ArenaCfg(const std::map<std::string, std::string>& settings);

  int64_t max_mem = 0;                           // the arena holds no more than this; 0: none of its own
  int arena_extend_strategy = -1;                // 0: kNextPowerOfTwo (the default); 1: kSameAsRequested
  int64_t initial_chunk_size_bytes = -1;         // of the first region: 1 MiB
  int64_t max_dead_bytes_per_chunk = -1;         // a block is split if more would be wasted: 128 MiB
  int64_t initial_growth_chunk_size_bytes = -1;  // of the first region after shrinking: 2 MiB
  int64_t max_power_of_two_extend_bytes = -1;    // doubling ends here: 1 GiB
};

// By ONNX Runtime's names.
struct ArenaStats {
  int64_t limit = 0;                 // Limit: max_mem; 0: none
  int64_t in_use = 0;                // InUse: bytes of blocks that somebody has
  int64_t total_allocated = 0;       // TotalAllocated: bytes that the arena holds
  int64_t max_in_use = 0;            // MaxInUse
  int64_t num_allocs = 0;            // NumAllocs
  int64_t num_reserves = 0;          // NumReserves: weights are never in an arena here, so 0
  int64_t num_arena_extensions = 0;  // NumArenaExtensions
  int64_t num_arena_shrinkages = 0;  // NumArenaShrinkages
  int64_t max_alloc_size = 0;        // MaxAllocSize
  // "Limit" to the number, and so on.
  std::map<std::string, int64_t> ToMap() const;
};

// Gives memory to the caller. A cheap handle; any thread. What came from an arena keeps it alive.
class Allocator {
 public:
  // The heap.
  Allocator();
  // Where the session takes what it does not plan: its arena, the Env's, or the operating system. Throws
  // kInvalidArgument of a MemoryInfo that is not "Cpu".
  Allocator(const Session& session, const MemoryInfo& info);

  // Aligned to 64 bytes. Throws kBudgetExceeded, kOutOfMemory.
  void* Alloc(size_t bytes) const;
  void Free(void* data) const noexcept;
  MemoryInfo GetInfo() const;
  // All zero without an arena.
  ArenaStats GetStats() const;

  struct Impl;
  explicit Allocator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

class AllocatorWithDefaultOptions : public Allocator {};

// A name or a text of a session, which the caller owns.
struct AllocatedFree {
  Allocator allocator;
  void operator()(void* data) const noexcept { allocator.Free(data); }
};
using AllocatedStringPtr = std::unique_ptr<char, AllocatedFree>;
AllocatedStringPtr allocate_text(const std::string& text, const Allocator& allocator);

}  // namespace plimsoll
