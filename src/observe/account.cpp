#include "observe/account.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr int64_t kPagesPerBatch = 64;  // the controller charges each processor this many pages ahead

void fill_process(const ProcessView& view, int64_t lazily_freed, const char* reclaim,
                  std::vector<MemoryPart>& parts) {
  parts = {
      {"heap", view.heap_bytes, 0, "malloc_trim"},
      {"allocator", view.allocator_bytes, std::min(lazily_freed, view.allocator_bytes),
       lazily_freed > 0 ? reclaim : "malloc_trim"},
      {"stacks", view.stack_bytes, 0, "ending threads"},
      {"anonymous_maps", view.anonymous_bytes, 0, "munmap"},
      {"private_file", view.private_file_bytes, 0, "munmap"},
      {"shared_file", view.shared_file_bytes, view.shared_file_bytes, reclaim},
      {"shared_memory", view.shared_memory_bytes, view.shared_memory_bytes, "unlink and munmap"},
  };
}

void fill_libraries(const FileShares& files, bool proportional, const char* reclaim,
                    std::vector<MemoryPart>& parts) {
  for (const auto& [name, share] : files) {
    const int64_t bytes = proportional ? share.pss_bytes : share.rss_bytes;
    parts.push_back({name, bytes, std::max<int64_t>(bytes - share.written_bytes, 0), reclaim});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void fill_container(const ContainerView& view, const ContainerReturns& returns, const char* reclaim,
                    std::vector<MemoryPart>& parts) {
  parts = {
      {"anonymous", view.anonymous_bytes, 0, ""},
      {"page_cache", view.page_cache_bytes, std::min(view.page_cache_bytes, returns.file_lists_bytes),
       reclaim},
      {"shared_memory", view.shared_memory_bytes, view.shared_memory_bytes, "unlink and munmap"},
      {"slab", view.slab_bytes, view.slab_reclaimable_bytes, reclaim},
      {"page_tables", view.page_table_bytes, 0, "munmap"},
      {"kernel_stacks", view.kernel_stack_bytes, 0, "ending threads"},
      {"sockets", view.version == 1 ? 0 : view.socket_bytes, 0, "reading or closing the sockets"},
      {"other_kernel", view.other_kernel_bytes, 0, ""},
  };
}

void note_process(const AccountSources& sources, const ProcessView& view, std::vector<std::string>& notes) {
  if (sources.gaps.denied > 0)
    notes.push_back(
        fmt::format("the mappings of {} process(es) may not be read: their memory is told apart only as "
                    "anonymous, file and "
                    "shared memory (ask as their owner or as root)",
                    sources.gaps.denied));
  if (sources.gaps.vanished > 0)
    notes.push_back(fmt::format("{} process(es) ended while they were read", sources.gaps.vanished));
  if (sources.gaps.huge_tlb_bytes > 0)
    notes.push_back(fmt::format("{} bytes in hugetlbfs pages are in no figure of the kernel's for a process",
                                sources.gaps.huge_tlb_bytes));
  if (view.fork_shared_bytes > 0)
    notes.push_back(
        fmt::format("{} bytes of private memory are still shared since a fork: each page is copied when "
                    "somebody writes it",
                    view.fork_shared_bytes));
  notes.push_back(
      "what malloc holds free within heap and allocator cannot be seen from outside: malloc_trim would tell");
}

void note_container(const AccountSources& sources, const MemoryAccount& account,
                    std::vector<std::string>& notes) {
  const ContainerView& view = *account.sample.container;
  if (view.version == 1)
    notes.push_back(fmt::format(
        "cgroup version 1 gives kernel memory as one figure: page tables and kernel stacks are estimated "
        "from "
        "{}{} process(es), the rest is called slab; {} bytes of sockets are not charged as memory and not in "
        "the sum",
        sources.share.complete ? "" : "the first ", sources.share.processes, view.socket_bytes));
  const int64_t batches = kPagesPerBatch * ::sysconf(_SC_PAGESIZE) * ::sysconf(_SC_NPROCESSORS_ONLN);
  notes.push_back(fmt::format(
      "the container's usage includes up to {} bytes that processors were charged ahead and have not used",
      batches));
}

}  // namespace

bool is_reconciled(const Sample& sample) noexcept {
  return is_small_rest(sample.process.kernel_bytes - sample.process.sum_bytes, sample.process.kernel_bytes);
}

const char* reclaim_file(const Sample& sample) noexcept {
  return sample.container && sample.container->version == 1 ? "memory.force_empty" : "memory.reclaim";
}

void fill_account(const AccountSources& sources, MemoryAccount& account) {
  const ProcessView& view = account.sample.process;
  const char* reclaim = reclaim_file(account.sample);
  fill_process(view, sources.gaps.lazily_freed_bytes, reclaim, account.process);
  fill_libraries(sources.files, view.proportional != 0, reclaim, account.libraries);
  account.process_unexplained_bytes = view.kernel_bytes - view.sum_bytes;
  note_process(sources, view, account.notes);
  if (account.sample.container) {
    const ContainerView& container = *account.sample.container;
    fill_container(container, sources.returns, reclaim, account.container);
    account.container_unexplained_bytes = container.kernel_bytes - container.sum_bytes;
    note_container(sources, account, account.notes);
  } else {
    account.notes.push_back("no memory cgroup can be seen for this process: there is no container's view");
  }
  find_cached_files(sources, account);
}

}  // namespace plimsoll
