#include "prepare/recompute_segments.h"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr uint32_t kNone = TurnModel::kNone;
constexpr size_t kMostNarrow = 512;

}  // namespace

Segments::Segments(const TurnModel& model, const LiveBytes& live, std::span<const uint32_t> turns,
                   uint32_t middle, std::pmr::memory_resource* memory)
    : live_(live),
      middle_(middle),
      root_(live.values().size(), 0, memory),
      last_before_(live.values().size(), 0, memory),
      needed_(live.values().size(), false, memory),
      needed_before_(middle + 1, 0, memory),
      across_(middle + 2, 0, memory),
      narrow_(memory) {
  const std::span<const LiveBytes::Value> values = live.values();
  for (uint32_t v = 0; v < values.size(); ++v) {
    const LiveBytes::Value& value = values[v];
    root_[v] = v;
    if (model.nodes[turns[value.made]].view && live.reads(value.made)[0] != kNone)
      root_[v] = root_[live.reads(value.made)[0]];
  }
  for (uint32_t t = 0; t < turns.size(); ++t) {
    if (model.nodes[turns[t]].view) continue;
    for (const uint32_t v : live.reads(t)) {
      if (v == kNone || values[root_[v]].made >= middle) continue;
      if (t <= middle) last_before_[root_[v]] = t;
      if (t > middle) needed_[root_[v]] = true;
    }
  }
  for (uint32_t v = 0; v < values.size() && values[v].made < middle; ++v) {
    const int64_t bytes = model.edges[values[v].edge].bytes;
    if (root_[v] != v) continue;
    if (needed_[v]) needed_before_[values[v].made + 1] += bytes;
    if (last_before_[v] <= values[v].made) continue;
    across_[values[v].made + 1] += bytes;
    across_[last_before_[v] + 1] -= bytes;
  }
  for (uint32_t t = 1; t <= middle; ++t) {
    needed_before_[t] += needed_before_[t - 1];
    across_[t] += across_[t - 1];
  }
  narrow_.push_back(0);
  for (uint32_t t = 1; t < middle; ++t) {
    if (across_[t] <= across_[t - 1] && across_[t] <= across_[t + 1]) narrow_.push_back(t);
  }
  if (narrow_.size() > kMostNarrow) {
    std::pmr::vector<uint32_t> thin(memory);
    for (size_t i = 0; i < kMostNarrow; ++i) thin.push_back(narrow_[i * narrow_.size() / kMostNarrow]);
    narrow_ = std::move(thin);
  }
  if (narrow_.back() != middle) narrow_.push_back(middle);
}

bool Segments::crosses(uint32_t value, uint32_t cut) const {
  return live_.values()[value].made < cut && last_before_[value] >= cut;
}

std::pmr::vector<uint32_t> Segments::cuts(int64_t most_bytes) const {
  const size_t count = narrow_.size();
  constexpr int64_t kFar = int64_t{1} << 60;
  std::pmr::vector<int64_t> least(count, kFar, narrow_.get_allocator());
  std::pmr::vector<uint32_t> from(count, 0, narrow_.get_allocator());
  least[0] = 0;
  for (size_t j = 1; j < count; ++j) {
    const int64_t here = j + 1 < count ? across_[narrow_[j]] : 0;
    for (size_t i = j; i-- > 0;) {
      const int64_t inside = needed_before_[narrow_[j]] - needed_before_[narrow_[i]];
      if (inside > most_bytes && i + 1 < j) break;
      if (least[i] + here < least[j]) least[j] = least[i] + here, from[j] = static_cast<uint32_t>(i);
    }
  }
  std::pmr::vector<uint32_t> result(narrow_.get_allocator());
  for (uint32_t at = from[count - 1]; at > 0; at = from[at]) result.push_back(narrow_[at]);
  std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace plimsoll
