// Everything that one watch learned: what its views, files and reports are made from.
#pragma once

#include <plimsoll/observe.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

// One experiment: what was done, and the figures before and after.
struct Experiment {
  std::string name;  // "trim", "reclaim", "restart"
  Sample before, after;
  std::string finding;  // a sentence with figures
};

struct WatchHistory {
  RecordingHeader header;
  std::vector<Sample> samples;
  std::optional<MemoryAccount> account;
  Verdict verdict;
  std::vector<Experiment> experiments;
  std::vector<std::string> notes;  // what people should know besides: endings, fallbacks
};

// The last sample that is no gap; null if there is none.
inline const Sample* last_reading(const std::vector<Sample>& samples) {
  for (auto at = samples.rbegin(); at != samples.rend(); ++at)
    if (!at->gap) return &*at;
  return nullptr;
}

// Which of `count` samples from `begin` on stands for them all: a gap, which must not be lost, or the first.
inline size_t representative(const std::vector<Sample>& samples, size_t begin, size_t count) {
  const size_t end = std::min(begin + count, samples.size());
  for (size_t i = begin; i < end; ++i)
    if (samples[i].gap) return i;
  return begin;
}

}  // namespace plimsoll::cli
