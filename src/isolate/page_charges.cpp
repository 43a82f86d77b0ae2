#include "isolate/page_charges.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace plimsoll {
namespace {

class Descriptor {
 public:
  Descriptor(const char* path, int flags) noexcept : number_(::open(path, flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

std::optional<uint64_t> word_at(const char* path, uint64_t index) noexcept {
  const Descriptor file(path, O_RDONLY);
  uint64_t word = 0;
  const auto offset = static_cast<off_t>(index * sizeof word);
  if (file.number() < 0 || ::pread(file.number(), &word, sizeof word, offset) != sizeof word)
    return std::nullopt;
  return word;
}

void add_number(const std::string& directory, std::set<uint64_t>& numbers) {
  struct stat status = {};
  if (::stat(directory.c_str(), &status) == 0) numbers.insert(status.st_ino);
}

}  // namespace

PageCharges::PageCharges(const std::string& memory_directory) {
  if (memory_directory.empty()) return;
  add_number(memory_directory, cgroups_);
  std::error_code error;
  auto below = std::filesystem::recursive_directory_iterator(memory_directory, error);
  for (; !error && below != std::filesystem::end(below); below.increment(error)) {
    if (below->is_directory(error)) add_number(below->path().string(), cgroups_);
  }
}

// The page is there: it was touched. Who may not know where it is reads 0.
bool PageCharges::has_page(const void* page) const noexcept {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kFrame = (uint64_t{1} << 55) - 1;
  const auto size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto place = word_at("/proc/self/pagemap", reinterpret_cast<uintptr_t>(page) / size);
  if (!place || (*place & kPresent) == 0 || (*place & kFrame) == 0) return false;
  const auto cgroup = word_at("/proc/kpagecgroup", *place & kFrame);
  return cgroup && cgroups_.count(*cgroup) != 0;
}

bool PageCharges::has_file(const std::string& path) const noexcept {
  if (cgroups_.empty()) return false;
  const Descriptor file(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  // A hole has no page, and reading it would make one of ours.
  const off_t data = file.number() < 0 ? -1 : ::lseek(file.number(), 0, SEEK_DATA);
  if (data < 0) return false;
  const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const off_t begin = data - data % static_cast<off_t>(size);
  void* page = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.number(), begin);
  if (page == MAP_FAILED) return false;
  const bool is_there = has_page(page);
  ::munmap(page, size);
  return is_there;
}

bool PageCharges::has_segment(int id) const noexcept {
  if (cgroups_.empty()) return false;
  void* place = ::shmat(id, nullptr, SHM_RDONLY);
  if (place == reinterpret_cast<void*>(-1)) return false;  // NOLINT(performance-no-int-to-ptr)
  static_cast<void>(::madvise(place, static_cast<size_t>(::sysconf(_SC_PAGESIZE)), MADV_POPULATE_READ));
  const bool is_there = has_page(place);
  ::shmdt(place);
  return is_there;
}

}  // namespace plimsoll
