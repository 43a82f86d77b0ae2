// Copies of whole elements between strided arrays: what data movement comes down to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace plimsoll::kernels {

// The loop nest of a copy, innermost axis first. Axes of size 1 vanish and axes that continue each
// other are merged as they are added, so that 64 places are enough for any tensor that fits memory.
struct CopyShape {
  static constexpr size_t kMaxAxes = 64;
  size_t rank = 0;
  bool empty = false;
  int64_t dims[kMaxAxes];
  int64_t source[kMaxAxes];  // strides in elements; 0 repeats, negative walks back
  int64_t target[kMaxAxes];

  // The next axis outwards. The product of all dims must fit 63 bits.
  void add(int64_t dim, int64_t source_stride, int64_t target_stride);
};

// Copies elements of `width` (1, 2, 4, 8 or 16) bytes. Source and target must not overlap, unless
// they are the same elements at the same place.
void strided_copy(std::byte* target, const std::byte* source, const CopyShape& shape, size_t width,
                  int threads);

// The same for elements of 2 or 4 bits that share bytes, one by one; counted from element `target_at` and
// `source_at`. The other bits of the target's bytes stay.
void strided_copy_bits(std::byte* target, int64_t target_at, const std::byte* source, int64_t source_at,
                       const CopyShape& shape, int bits);

// Writes `count` copies of the element at `value`.
void fill(std::byte* target, int64_t count, const std::byte* value, size_t width);

// A plain copy that costs nothing when the data is in place already; regions may overlap.
inline void copy_bytes(std::byte* target, const std::byte* source, int64_t bytes) {
  if (target != source && bytes > 0) std::memmove(target, source, static_cast<size_t>(bytes));
}

}  // namespace plimsoll::kernels
