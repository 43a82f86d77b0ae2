// Whose memory a file or a segment is: the cgroup that its pages are charged to, as root may ask the kernel.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace plimsoll {

class PageCharges {
 public:
  // `memory_directory`: of the job's cgroup; empty: it has none, and nothing can be told.
  explicit PageCharges(const std::string& memory_directory);
  // Whether its first page in memory is charged to that cgroup or one below. False where nobody can tell.
  bool has_file(const std::string& path) const noexcept;
  bool has_segment(int id) const noexcept;  // of System V

 private:
  bool has_page(const void* page) const noexcept;

  std::set<uint64_t> cgroups_;  // by the numbers of their directories
};

}  // namespace plimsoll
