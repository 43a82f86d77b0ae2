// Stacks that the kernel has made one mapping with what lies above them. Before Linux 6.7 a thread's stack
// has no mark of its own, so a map that is put next to it, or that it is put next to, may be merged with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "observe/procfs.h"
#include "observe/smaps.h"

namespace plimsoll {

// Where the C library's record of each thread is, in order: glibc keeps it at the top of the thread's stack
// and tells the kernel its address (set_robust_list). Needs the rights that smaps needs, and thread numbers
// that are ours. Threads without one are left out.
std::vector<uint64_t> find_thread_records(const ProcessDirectory& directory);

// Bytes of [start, end) that are resident, or -1 if nobody may know.
using ResidentBytes = std::function<int64_t(uint64_t start, uint64_t end)>;
int64_t count_resident_bytes(int directory, const char* pagemap, uint64_t start, uint64_t end);

// Whether some mapping may be a stack and hold so much that it matters what else is in it.
bool has_guarded_maps(const std::vector<Vma>& vmas) noexcept;

// Cuts guarded mappings in two where the lowest record in them says that the stack ends.
void cut_merged_stacks(const std::vector<uint64_t>& records, const ResidentBytes& resident_bytes,
                       std::vector<Vma>& vmas);

}  // namespace plimsoll
