#include "plan/placement.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"

namespace plimsoll::plan {
namespace {

constexpr int64_t kLargest = int64_t{1} << 62;

void validate_buffer(const Problem& problem, size_t i, const BufferName& name) {
  const Buffer& b = problem.buffers[i];
  const auto reject = [&](const char* expected, int64_t found) {
    fail(ErrorCode::kInvalidArgument, "{}: {} expected, found {}", name(i), expected, found);
  };
  if (b.size < 0 || b.size > kLargest) reject("a size from 0 to 2^62", b.size);
  if (b.lower >= b.upper) {
    fail(ErrorCode::kInvalidArgument, "{}: lifetime [{}, {}) is empty", name(i), b.lower, b.upper);
  }
  if (b.alignment < 1 || (b.alignment & (b.alignment - 1)) != 0 || b.alignment > kLargest) {
    reject("a power of two as alignment", b.alignment);
  }
  if (b.offset && (*b.offset < 0 || *b.offset > kLargest))
    reject("a pinned offset from 0 to 2^62", *b.offset);
  if (b.offset && *b.offset % b.alignment != 0) reject("a pinned offset that is aligned", *b.offset);
  if (b.space < 0) reject("a space from 0", b.space);
  if (!problem.capacity.empty() && static_cast<size_t>(b.space) >= problem.capacity.size()) {
    reject("a space with a capacity", b.space);
  }
}

}  // namespace

std::string by_number(size_t buffer) {
  return fmt::format("buffer {}", buffer);
}

void validate(const Problem& problem, const BufferName& name) {
  int64_t total = 0;  // no offset of any placer exceeds it
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    validate_buffer(problem, i, name);
    const Buffer& b = problem.buffers[i];
    for (int64_t bytes : {b.size, b.alignment, b.offset.value_or(0)}) {
      if (__builtin_add_overflow(total, bytes, &total) || total > kLargest) {
        fail(ErrorCode::kInvalidArgument, "{}: the buffers up to it need more than 2^62 bytes", name(i));
      }
    }
  }
}

int space_count(const Problem& problem) {
  int count = static_cast<int>(problem.capacity.size());
  for (const Buffer& b : problem.buffers) count = std::max(count, b.space + 1);
  return count;
}

LowerBound lower_bound(const Problem& problem, int space) {
  std::pmr::vector<std::pair<int64_t, int64_t>> changes(
      problem.buffers.get_allocator());  // (time, bytes); what ends sorts before what starts
  for (const Buffer& b : problem.buffers) {
    if (b.space != space || b.size == 0) continue;
    changes.emplace_back(b.lower, b.size);
    changes.emplace_back(b.upper, -b.size);
  }
  std::sort(changes.begin(), changes.end());
  LowerBound bound;
  int64_t live = 0;
  for (const auto& [time, bytes] : changes) {
    live += bytes;
    if (live > bound.bytes) bound = {live, time};
  }
  return bound;
}

}  // namespace plimsoll::plan
