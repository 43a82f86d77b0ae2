#include "plimsoll/allocator.h"

#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "plimsoll/memory_limit.h"
#include "runtime/session_impl.h"

namespace plimsoll {
namespace {

int64_t parse_setting(const std::string& name, const std::string& text) {
  if (text == "-1") return -1;
  if (text == "0") return 0;
  try {
    return ParseMemorySize(text);
  } catch (const Error& error) {
    fail(error.code(), "arena: {}: {}", name, error.what());
  }
}

int parse_strategy(const std::string& text) {
  if (text == "-1") return -1;
  if (text == "kNextPowerOfTwo" || text == "0") return 0;
  if (text == "kSameAsRequested" || text == "1") return 1;
  fail(ErrorCode::kInvalidArgument,
       "arena: arena_extend_strategy: expected kNextPowerOfTwo or kSameAsRequested, found '{}'", text);
}

}  // namespace

ArenaCfg::ArenaCfg(const std::map<std::string, std::string>& settings) {
  for (const auto& [name, text] : settings) {
    if (name == "arena_extend_strategy") {
      arena_extend_strategy = parse_strategy(text);
    } else if (name == "max_mem" || name == "gpu_mem_limit") {
      max_mem = parse_setting(name, text);
    } else if (name == "initial_chunk_size_bytes") {
      initial_chunk_size_bytes = parse_setting(name, text);
    } else if (name == "max_dead_bytes_per_chunk") {
      max_dead_bytes_per_chunk = parse_setting(name, text);
    } else if (name == "initial_growth_chunk_size_bytes") {
      initial_growth_chunk_size_bytes = parse_setting(name, text);
    } else if (name == "max_power_of_two_extend_bytes") {
      max_power_of_two_extend_bytes = parse_setting(name, text);
    } else {
      fail(ErrorCode::kInvalidArgument,
           "arena: there is no setting '{}'; expected max_mem, arena_extend_strategy, "
           "initial_chunk_size_bytes, max_dead_bytes_per_chunk, initial_growth_chunk_size_bytes or "
           "max_power_of_two_extend_bytes",
           name);
    }
  }
  ArenaSettings{*this};  // says what is wrong with it
}

std::map<std::string, int64_t> ArenaStats::ToMap() const {
  return {{"Limit", limit},
          {"InUse", in_use},
          {"TotalAllocated", total_allocated},
          {"MaxInUse", max_in_use},
          {"NumAllocs", num_allocs},
          {"NumReserves", num_reserves},
          {"NumArenaExtensions", num_arena_extensions},
          {"NumArenaShrinkages", num_arena_shrinkages},
          {"MaxAllocSize", max_alloc_size}};
}

std::shared_ptr<BlockArena> make_arena(const ArenaCfg& settings, std::shared_ptr<Budget> kept,
                                       Budget& owner) {
  struct Kept {
    std::shared_ptr<Budget> budget;
    BlockArena arena;
  };
  const ArenaSettings complete(settings);
  auto both = std::shared_ptr<Kept>(new Kept{std::move(kept), {complete, owner, Account::kDynamic}});
  return {both, &both->arena};
}

void check_cpu(const MemoryInfo& info) {
  if (!info.IsCpu())
    fail(ErrorCode::kInvalidArgument, "memory '{}': expected Cpu, the only memory of this build",
         info.GetAllocatorName());
}

Allocator::Allocator() : impl_(std::make_shared<Impl>()) {}

Allocator::Allocator(const Session& session, const MemoryInfo& info) : Allocator() {
  check_cpu(info);
  impl_->arena = session.impl_->arena;
}

void* Allocator::Alloc(size_t bytes) const {
  constexpr int64_t kAlignment = 64;
  if (impl_->arena != nullptr) return impl_->arena->allocate(static_cast<int64_t>(bytes));
  const int64_t rounded = round_up(std::max<int64_t>(static_cast<int64_t>(bytes), 1), kAlignment);
  void* data = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
  if (data == nullptr) fail(ErrorCode::kOutOfMemory, "the heap has no {} bytes", bytes);
  return data;
}

void Allocator::Free(void* data) const noexcept {
  if (impl_->arena != nullptr) return impl_->arena->free(data);
  std::free(data);
}

MemoryInfo Allocator::GetInfo() const {
  return {"Cpu", impl_->arena != nullptr ? AllocatorType::kArena : AllocatorType::kDevice};
}

ArenaStats Allocator::GetStats() const {
  return impl_->arena != nullptr ? impl_->arena->stats() : ArenaStats{};
}

AllocatedStringPtr allocate_text(const std::string& text, const Allocator& allocator) {
  AllocatedStringPtr result(static_cast<char*>(allocator.Alloc(text.size() + 1)), AllocatedFree{allocator});
  std::memcpy(result.get(), text.c_str(), text.size() + 1);
  return result;
}

}  // namespace plimsoll
