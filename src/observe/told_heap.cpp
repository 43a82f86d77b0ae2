#include "observe/told_heap.h"

#include "observe/file_reader.h"

namespace plimsoll {

std::optional<ToldHeap> parse_told_heap(std::string_view bytes) {
  constexpr int64_t kMost = int64_t{1} << 50;
  if (!bytes.ends_with('\n')) return std::nullopt;
  bytes.remove_suffix(1);
  if (next_word(bytes) != "plimsoll-heap" || next_word(bytes) != "1") return std::nullopt;
  const std::string_view turn = next_word(bytes);
  ToldHeap told;
  int64_t start_ticks = 0;
  for (int64_t* number : {&start_ticks, &told.collections, &told.live_bytes, &told.heap_bytes,
                          &told.asked_collections, &told.asked_microseconds, &told.untold_heaps}) {
    const auto found = parse_number(next_word(bytes));
    if (!found || *found < 0 || *found > kMost) return std::nullopt;
    *number = *found;
  }
  if (turn.empty() || next_word(bytes) != turn || !next_word(bytes).empty()) return std::nullopt;
  told.start_ticks = static_cast<uint64_t>(start_ticks);
  return told;
}

}  // namespace plimsoll
