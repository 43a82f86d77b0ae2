// Page cache by file: which pages of the files that processes have open or mapped are in memory.
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/descriptor.h"
#include "base/fail.h"
#include "observe/account.h"

namespace plimsoll {
namespace {

constexpr size_t kMostFiles = 4096;
constexpr int64_t kLeastBytes = 64 << 10;  // smaller ones are not worth a line

// cachestat(2), Linux 6.5, which no C library here declares.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  uint64_t offset = 0, length = 0;  // length 0: to the end
};
struct Cachestat {
  uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;  // pages
};

int64_t page_bytes() {
  return ::sysconf(_SC_PAGESIZE);
}

// Older kernels: map the file and ask for each page. Without the right to write it the answer is always yes.
std::optional<int64_t> cached_by_mincore(int file, int64_t bytes) {
  constexpr int64_t kWindow = int64_t{64} << 20;
  std::array<unsigned char, kWindow / 4096> present;
  int64_t pages = 0;
  for (int64_t at = 0; at < bytes; at += kWindow) {
    const auto length = static_cast<size_t>(std::min(kWindow, bytes - at));
    void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, at);
    if (window == MAP_FAILED) return std::nullopt;
    const bool answered = ::mincore(window, length, present.data()) == 0;
    ::munmap(window, length);
    if (!answered) return std::nullopt;
    const size_t count = (length + static_cast<size_t>(page_bytes()) - 1) / static_cast<size_t>(page_bytes());
    pages += std::count_if(present.begin(), present.begin() + static_cast<std::ptrdiff_t>(count),
                           [](unsigned char flags) { return (flags & 1) != 0; });
  }
  return pages * page_bytes();
}

std::optional<int64_t> cached_bytes(int file, int64_t bytes) {
  CachestatRange range;
  Cachestat answer;
  if (::syscall(kCachestatCall, file, &range, &answer, 0) == 0)
    return static_cast<int64_t>(answer.cached) * page_bytes();
  if (::faccessat(file, "", W_OK, AT_EMPTY_PATH) != 0) return std::nullopt;
  return cached_by_mincore(file, bytes);
}

class CacheFinder {
 public:
  CacheFinder(std::vector<MemoryPart>& parts, const char* reclaim) : parts_(parts), reclaim_(reclaim) {}

  // `path` may be one of /proc/PID/fd, whose file has no other name. Nothing but regular files is opened:
  // opening a device or a pipe can do something.
  void add(const std::string& path, const std::string& name) {
    if (seen_.size() >= kMostFiles) return;
    const Descriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status = {};
    if (place.get() < 0 || ::fstat(place.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (status.st_size < kLeastBytes || !seen_.emplace(status.st_dev, status.st_ino).second) return;
    struct statfs system = {};
    if (::fstatfs(place.get(), &system) != 0 || system.f_type == TMPFS_MAGIC ||
        system.f_type == RAMFS_MAGIC || system.f_type == HUGETLBFS_MAGIC || system.f_type == PROC_SUPER_MAGIC)
      return;
    const std::string again = "/proc/self/fd/" + std::to_string(place.get());
    const Descriptor file(::open(again.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    const auto bytes = file.get() < 0 ? std::nullopt : cached_bytes(file.get(), status.st_size);
    if (!bytes) {
      ++refused_;
    } else if (*bytes >= kLeastBytes) {
      parts_.push_back({printable(name), *bytes, *bytes, reclaim_});
    }
  }

  void add_open_files(const std::string& process) {
    const std::string directory = process + "/fd";
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
    if (!stream) return;
    while (const dirent* entry = ::readdir(stream.get())) {
      if (entry->d_name[0] == '.') continue;
      const std::string path = directory + "/" + entry->d_name;
      std::array<char, PATH_MAX> target;
      const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
      if (length > 0 && target[0] == '/') add(path, {target.data(), static_cast<size_t>(length)});
    }
  }

  int64_t refused() const noexcept { return refused_; }
  bool complete() const noexcept { return seen_.size() < kMostFiles; }

 private:
  std::vector<MemoryPart>& parts_;
  const char* reclaim_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  int64_t refused_ = 0;
};

}  // namespace

void find_cached_files(const AccountSources& sources, MemoryAccount& account) {
  CacheFinder finder(account.cached_files, reclaim_file(account.sample));
  for (const int pid : sources.cache_pids)
    finder.add_open_files(sources.proc_root + "/" + std::to_string(pid));
  if (!sources.cache_pids.empty()) {
    const std::string root = sources.proc_root + "/" + std::to_string(sources.cache_pids.front()) + "/root";
    for (const auto& [name, share] : sources.files) {
      if (name.starts_with('/') && !name.ends_with(" (deleted)")) finder.add(root + name, name);
    }
  }
  std::stable_sort(account.cached_files.begin(), account.cached_files.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (!account.cached_files.empty())
    account.notes.push_back(
        "cached_files are the pages in memory of files that are open or mapped now: whether this container "
        "is "
        "charged for them, or whoever read them first, the kernel does not tell; files that were closed are "
        "not among them");
  if (finder.refused() > 0)
    account.notes.push_back(fmt::format(
        "the page cache of {} file(s) may not be looked at: they are not ours to write", finder.refused()));
  if (!finder.complete())
    account.notes.push_back(fmt::format("only the first {} files were looked at", kMostFiles));
}

}  // namespace plimsoll
