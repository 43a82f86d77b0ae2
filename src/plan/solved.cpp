#include "plan/solved.h"

#include <algorithm>

#include "base/checksum.h"
#include "plan/check.h"

namespace plimsoll::plan {

uint64_t SolvedPlacements::key_of(const Problem& problem) {
  uint64_t key = problem.buffers.size();
  for (const Buffer& b : problem.buffers) {
    const int64_t parts[] = {b.size, b.lower, b.upper, b.alignment, b.offset.value_or(-1), b.space};
    key = checksum(std::as_bytes(std::span(parts)), key);
  }
  return key;
}

std::optional<Placement> SolvedPlacements::find(const Problem& problem) const {
  if (entries_.empty()) return std::nullopt;
  const uint64_t key = key_of(problem);
  for (const Entry& entry : entries_) {
    if (entry.problem != key || entry.offsets.size() != problem.buffers.size()) continue;
    const auto memory = problem.buffers.get_allocator().resource();
    Placement placement{Offsets(entry.offsets.begin(), entry.offsets.end(), memory), Offsets(memory)};
    placement.peak.assign(static_cast<size_t>(space_count(problem)), 0);
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const Buffer& b = problem.buffers[i];
      if (b.size == 0 || placement.offsets[i] < 0 || placement.offsets[i] > kUnlimited - b.size) continue;
      int64_t& peak = placement.peak[static_cast<size_t>(b.space)];
      peak = std::max(peak, placement.offsets[i] + b.size);
    }
    if (check(problem, placement, 1).empty()) return placement;
  }
  return std::nullopt;
}

void SolvedPlacements::add(const Problem& problem, const Placement& placement) {
  add(Entry{key_of(problem), {placement.offsets.begin(), placement.offsets.end()}});
}

}  // namespace plimsoll::plan
