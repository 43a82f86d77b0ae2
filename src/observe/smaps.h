// /proc/PID/smaps as plain data: one Vma per mapping, read in pieces, however many there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plimsoll {

// Names of mappings, each kept once.
class NameTable {
 public:
  NameTable();
  uint32_t intern(std::string_view name);
  const std::string& operator[](uint32_t index) const { return *names_[index]; }
  size_t size() const noexcept { return names_.size(); }

 private:
  std::unordered_map<std::string, uint32_t> indices_;
  std::vector<const std::string*> names_;  // keys of indices_, which stay where they are
};

struct Vma {
  uint64_t start = 0, end = 0;
  uint64_t device = 0;  // major << 32 | minor
  uint64_t inode = 0;
  uint32_t name = 0;  // of a NameTable; 0: none
  bool readable = false, writable = false, executable = false, shared = false;
  bool no_reserve = false;    // "nr": MAP_NORESERVE
  bool no_huge_page = false;  // "nh": madvise, or MAP_STACK since Linux 6.7
  bool grows_down = false;    // "gd"
  // In bytes.
  int64_t rss = 0, pss = 0;
  int64_t shared_clean = 0, shared_dirty = 0, private_clean = 0, private_dirty = 0;
  int64_t anonymous = 0;
  int64_t huge_pages = 0;
  int64_t lazily_freed = 0;  // MADV_FREE
  int64_t swap = 0, swap_proportional = 0;

  uint64_t size() const noexcept { return end - start; }
};

// Feeds on pieces of the file in order and appends to `vmas`. Lines that it does not know are skipped.
class SmapsParser {
 public:
  SmapsParser(std::vector<Vma>& vmas, NameTable& names) : vmas_(vmas), names_(names) {}
  void feed(std::string_view piece);
  void finish();  // what follows the last newline is a line too

 private:
  void line(std::string_view line);
  bool header(std::string_view line);
  void field(std::string_view line);

  std::vector<Vma>& vmas_;
  NameTable& names_;
  std::string rest_;  // of a line that was cut
};

// Reads `directory`/`path`. Nothing (0 mappings and false) if it cannot be opened; true if it was read to its
// end. A process that exits meanwhile cuts the file short: true with fewer mappings.
bool read_smaps(int directory, const char* path, std::vector<Vma>& vmas, NameTable& names, int& error);

}  // namespace plimsoll
