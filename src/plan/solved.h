// Placements that were found before, kept by the problem that they solve.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/placement.h"

namespace plimsoll::plan {

class SolvedPlacements {
 public:
  struct Entry {
    uint64_t problem = 0;  // key_of it
    std::vector<int64_t> offsets;
  };

  // What is found has been judged by check(): what somebody wrote into a file is not believed.
  std::optional<Placement> find(const Problem& problem) const;
  void add(const Problem& problem,
           const Placement& placement);  // of several for one problem the first counts
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  const std::vector<Entry>& entries() const { return entries_; }

  static uint64_t key_of(const Problem& problem);

 private:
  std::vector<Entry> entries_;
};

}  // namespace plimsoll::plan
