// What a runtime that was asked (`plimsoll watch -- COMMAND`) says about its own heap, in a file per process.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll {

struct ToldHeap {
  uint64_t start_ticks = 0;        // of the process that wrote it: its number may be another's by now
  int64_t collections = 0;         // full ones, so far
  int64_t live_bytes = 0;          // what was left at the last of them
  int64_t heap_bytes = 0;          // what the heap takes now, with what it owns outside
  int64_t asked_collections = 0;   // of `collections`, that the watch asked for
  int64_t asked_microseconds = 0;  // of processor time
  int64_t untold_heaps = 0;        // of threads that have one of their own
};

// The file's bytes, all of which are distrusted. Nothing where they were read while they were written.
std::optional<ToldHeap> parse_told_heap(std::string_view bytes);

}  // namespace plimsoll
