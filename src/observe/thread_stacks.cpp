#include "observe/thread_stacks.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/descriptor.h"

namespace plimsoll {
namespace {

constexpr int64_t kLeastBytes = int64_t{64} << 10;  // less is a stack's own, or does not matter
constexpr uint64_t kMostCounted = uint64_t{256} << 20;
constexpr uint64_t kPagemapPresent = uint64_t{1} << 63;

bool is_plain(const Vma& vma) {
  return vma.inode == 0 && vma.name == 0 && !vma.shared;
}

bool is_guarded_map(const std::vector<Vma>& vmas, size_t i) {
  if (i == 0) return false;
  const Vma& vma = vmas[i];
  const Vma& guard = vmas[i - 1];
  return is_plain(vma) && vma.readable && vma.writable && vma.rss >= kLeastBytes && is_plain(guard) &&
         guard.end == vma.start && !guard.readable && !guard.writable && !guard.executable;
}

// Takes what lies below `at` off `vma`; `resident` bytes of it are there, and its other figures go with them.
Vma cut_front(Vma& vma, uint64_t at, int64_t resident) {
  constexpr int64_t Vma::*kFigures[] = {
      &Vma::pss,       &Vma::shared_clean, &Vma::shared_dirty, &Vma::private_clean, &Vma::private_dirty,
      &Vma::anonymous, &Vma::huge_pages,   &Vma::lazily_freed, &Vma::swap,          &Vma::swap_proportional};
  Vma front = vma;
  front.end = vma.start = at;
  front.rss = std::clamp<int64_t>(resident, 0, vma.rss);
  const double share = static_cast<double>(front.rss) / static_cast<double>(vma.rss);
  for (const auto figure : kFigures) {
    front.*figure = static_cast<int64_t>(static_cast<double>(vma.*figure) * share);
    vma.*figure -= front.*figure;
  }
  vma.rss -= front.rss;
  return front;
}

// Where the stack at the bottom of `vma` ends; 0: no thread's record is in it. There may be more of them: the
// first thread's is in a map of the dynamic linker's, which may be part of this one too.
uint64_t find_stack_end(const Vma& vma, const std::vector<uint64_t>& records) {
  const auto lowest = std::lower_bound(records.begin(), records.end(), vma.start);
  if (lowest == records.end() || *lowest >= vma.end) return 0;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (*lowest / page + 1) * page;
}

}  // namespace

std::vector<uint64_t> find_thread_records(const ProcessDirectory& directory) {
  std::vector<uint64_t> records;
  for (const int thread : directory.threads()) {
    robust_list_head* head = nullptr;
    size_t length = 0;
    if (::syscall(SYS_get_robust_list, thread, &head, &length) == 0 && head != nullptr)
      records.push_back(reinterpret_cast<uintptr_t>(head));
  }
  std::sort(records.begin(), records.end());
  return records;
}

int64_t count_resident_bytes(int directory, const char* pagemap, uint64_t start, uint64_t end) {
  const Descriptor file(::openat(directory, pagemap, O_RDONLY | O_CLOEXEC));
  if (!file) return -1;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<uint64_t, 2048> entries;
  int64_t bytes = 0;
  for (uint64_t at = start / page; at < end / page;) {
    const size_t wanted = std::min<uint64_t>(entries.size(), end / page - at) * sizeof(uint64_t);
    const ssize_t got =
        ::pread(file.get(), entries.data(), wanted, static_cast<off_t>(at * sizeof(uint64_t)));
    if (got < static_cast<ssize_t>(sizeof(uint64_t))) return -1;
    const size_t count = static_cast<size_t>(got) / sizeof(uint64_t);
    for (size_t i = 0; i < count; ++i)
      if ((entries[i] & kPagemapPresent) != 0) bytes += static_cast<int64_t>(page);
    at += count;
  }
  return bytes;
}

bool has_guarded_maps(const std::vector<Vma>& vmas) noexcept {
  for (size_t i = 0; i < vmas.size(); ++i)
    if (is_guarded_map(vmas, i)) return true;
  return false;
}

void cut_merged_stacks(const std::vector<uint64_t>& records, const ResidentBytes& resident_bytes,
                       std::vector<Vma>& vmas) {
  std::vector<Vma> cut;
  cut.reserve(vmas.size());
  for (size_t i = 0; i < vmas.size(); ++i) {
    Vma vma = vmas[i];
    const uint64_t end = is_guarded_map(vmas, i) ? find_stack_end(vma, records) : 0;
    if (end != 0 && end < vma.end) {
      // A stack is mostly empty, and huge pages may fill it between two readings: rather count what is above.
      const bool is_front = vma.end - end > std::max(kMostCounted, end - vma.start);
      const int64_t counted = is_front ? resident_bytes(vma.start, end) : resident_bytes(end, vma.end);
      if (counted >= 0) cut.push_back(cut_front(vma, end, is_front ? counted : vma.rss - counted));
    }
    cut.push_back(vma);
  }
  vmas = std::move(cut);
}

}  // namespace plimsoll
