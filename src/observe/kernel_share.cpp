// What version 1 does not tell: page tables and kernel stacks, asked of the processes in the cgroup.
#include <algorithm>
#include <bit>
#include <filesystem>

#include "observe/container.h"
#include "observe/procfs.h"

namespace plimsoll {
namespace {

constexpr int64_t kMostProcesses = 2000;
constexpr int64_t kUsualStackBytes = 16 << 10;

void add_processes(const std::string& directory, const std::string& proc_root, FileReader& reader,
                   KernelShare& share) {
  const std::string pids(reader.read((directory + "/cgroup.procs").c_str()).value_or(""));
  std::string_view text = pids;
  while (const auto line = next_line(text)) {
    const auto pid = parse_number(*line);
    if (!pid) continue;
    if (share.processes >= kMostProcesses) {
      share.complete = false;
      return;
    }
    const auto status = ProcessDirectory(proc_root, static_cast<int>(*pid)).status(reader);
    if (!status) continue;
    ++share.processes;
    share.page_table_bytes += status->page_table_bytes;
    share.threads += status->threads;
  }
}

// All on the machine: "0.1 0.2 0.3 1/234 5678" has it behind the slash.
int64_t count_threads(const std::string& proc_root, FileReader& reader) {
  std::string_view load = reader.read((proc_root + "/loadavg").c_str()).value_or("");
  const size_t slash = load.find('/');
  if (slash == std::string_view::npos) return 0;
  load.remove_prefix(slash + 1);
  return parse_number(next_word(load)).value_or(0);
}

}  // namespace

// The kernel's stacks divided by the number of threads. Zombies are counted and have none, and threads come
// and go between two readings: where the two do not fit, it is the usual size, than which no 64-bit kernel
// has less.
int64_t kernel_stack_bytes_per_thread(const std::string& proc_root, FileReader& reader) {
  const int64_t before = count_threads(proc_root, reader);
  const int64_t kib =
      number_of(reader.read((proc_root + "/meminfo").c_str()).value_or(""), "KernelStack").value_or(0);
  const int64_t threads = std::max(before, count_threads(proc_root, reader));
  if (kib <= 0 || threads <= 0) return kUsualStackBytes;
  // Some threads are on their way in or out: the size is a power of two near the quotient.
  const auto quotient = static_cast<uint64_t>(kib * 1024 / threads);
  return std::max(kUsualStackBytes, static_cast<int64_t>(std::bit_floor(quotient + quotient / 2)));
}

KernelShare estimate_kernel_share(const CgroupPlace& place, const std::string& proc_root,
                                  FileReader& reader) {
  KernelShare share;
  add_processes(place.directory, proc_root, reader, share);
  std::error_code error;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk entry(place.directory, std::filesystem::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) add_processes(entry->path().string(), proc_root, reader, share);
  }
  return share;
}

}  // namespace plimsoll
