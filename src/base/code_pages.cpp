#include "base/code_pages.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/descriptor.h"

namespace plimsoll {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t address) const { return begin <= address && address < end; }
};

// The executable segment, of whichever program or library, with this address in it.
Range code_with(uintptr_t address) {
  struct Search {
    uintptr_t address;
    Range found;
  } search{address, {}};
  const auto look = [](dl_phdr_info* info, size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || (segment.p_flags & PF_W) != 0)
        continue;
      const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
      const Range range{begin, begin + segment.p_memsz};
      if (range.holds(wanted.address)) return wanted.found = range, 1;
    }
    return 0;
  };
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

// Of an entry of /proc/self/pagemap: in memory, and as the file has it.
bool is_of_file(uint64_t entry) {
  return (entry >> 63) != 0 && ((entry >> 61) & 1) != 0;
}

// Somewhere, and not as the file has it: a debugger was here.
bool is_ours(uint64_t entry) {
  return (entry >> 62) != 0 && !is_of_file(entry);
}

}  // namespace

void drop_code_pages() noexcept {
  const Range code = code_with(reinterpret_cast<uintptr_t>(&drop_code_pages));
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const Descriptor map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!map) return;
  constexpr uintptr_t kAtOnce = 4096;
  uint64_t entries[kAtOnce];
  uintptr_t begin = 0, end = 0;  // pages to drop that are not dropped yet
  const auto drop = [&] {
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin * page), (end - begin) * page, MADV_DONTNEED);
    begin = end = 0;
  };
  // Whole pages: the first and the last may hold something else.
  for (uintptr_t first = (code.begin + page - 1) / page; first < code.end / page; first += kAtOnce) {
    const uintptr_t count = std::min(kAtOnce, code.end / page - first);
    const auto size = static_cast<ssize_t>(count * sizeof(uint64_t));
    if (::pread(map.get(), entries, static_cast<size_t>(size),
                static_cast<off_t>(first * sizeof(uint64_t))) != size)
      break;
    // Dropping what is not there does nothing, so that most of it goes by one call.
    for (uintptr_t i = 0; i < count; ++i) {
      if (is_of_file(entries[i])) {
        if (begin == end) begin = first + i;
        end = first + i + 1;
      } else if (is_ours(entries[i])) {
        drop();
      }
    }
  }
  drop();
}

}  // namespace plimsoll
