// From one full sample to an account: names, what would come back and how, and what is not known.
#pragma once

#include <string>
#include <vector>

#include "observe/container.h"
#include "observe/process_reader.h"
#include "plimsoll/observe.h"

namespace plimsoll {

struct AccountSources {
  FileShares files;
  ReadingGaps gaps;
  KernelShare share;
  ContainerReturns returns;
  std::string proc_root;
  std::vector<int> cache_pids;  // whose open files are looked at; the watched process first
};

// The rest is at most 2 % or 1 MiB in the process view.
bool is_reconciled(const Sample& sample) noexcept;
// The file of the sample's container that reclaims memory; without a container that of version 2.
const char* reclaim_file(const Sample& sample) noexcept;
// Fills everything but `sample`, which is given.
void fill_account(const AccountSources& sources, MemoryAccount& account);
// Page cache of the files that the processes have open or mapped; notes say what that means.
void find_cached_files(const AccountSources& sources, MemoryAccount& account);

}  // namespace plimsoll
