// What a session, a run or the process holds, account by account.
//
// Plain data: a snapshot that belongs to whoever asked for it, valid for ever. Taking one never
// blocks a run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace plimsoll {

// Every byte that Plimsoll takes is in exactly one account.
enum class Account : uint8_t {
  kWeights,  // initializers used as they are: views of the mapped file, or owned copies
  kPacked,   // weights in the layout a kernel wants
  kPlanned,  // activations, at offsets known before the run
  kDynamic,  // values whose shape depends on data
  kScratch,  // working memory of kernels
  kBound,    // inputs and outputs that live outside the plan
  kCode,     // JIT kernels and their descriptors: a reserved ceiling, not a measurement
  kSession,  // graph, plans, caches
  // Of training only:
  kGradients,  // gradients that are kept from step to step, to be added up
  kOptimizer,  // moments and what else an optimizer remembers
};
inline constexpr size_t kAccounts = 10;
const char* account_name(Account account) noexcept;

struct AccountReport {
  int64_t now_bytes = 0;
  int64_t peak_bytes = 0;
  // When all accounts together were highest: these add up to MemoryReport::peak_bytes, unless threads charged
  // at that very moment.
  int64_t at_peak_bytes = 0;
};

struct MemoryReport {
  std::array<AccountReport, kAccounts> accounts;
  int64_t now_bytes = 0;    // all accounts together
  int64_t peak_bytes = 0;   // the highest value of now_bytes, not the sum of the peaks
  int64_t limit_bytes = 0;  // 0: no limit

  const AccountReport& operator[](Account account) const { return accounts[static_cast<size_t>(account)]; }
};

// The kernel's own figures for this process, to hold beside a MemoryReport.
struct ProcessMemory {
  int64_t rss_bytes = 0;
  int64_t peak_rss_bytes = 0;
  int64_t anonymous_bytes = 0;
  int64_t file_bytes = 0;  // libraries and mapped models
};
ProcessMemory read_process_memory();

}  // namespace plimsoll
