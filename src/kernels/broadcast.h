// Walking several row-major operands in step, where dimensions of 1 stand still.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "kernels/parallel.h"

namespace plimsoll::kernels {

inline constexpr int kMaxOperands = 3;
inline constexpr int kMaxBroadcastRank = 32;

// A block of the output: `rows` x `cols` elements, which are contiguous in the output within a row.
// Offsets and strides are in elements; column strides are 0 or 1.
struct BroadcastBlock {
  int64_t rows, cols;
  int64_t output, output_row;
  std::array<int64_t, kMaxOperands> offset, row_stride, col_stride;
};

// The loop nest, with neighbouring dimensions merged wherever every operand allows it: equal shapes
// become one row, a bias over the last axis two dimensions.
class Broadcast {
 public:
  // Each operand's shape must be broadcastable to `output` (at most kMaxBroadcastRank dimensions).
  Broadcast(std::span<const int64_t> output, std::initializer_list<std::span<const int64_t>> operands);

  // Calls f(block) for blocks that together cover the output once, on at most `threads` threads. The
  // blocks do not depend on the number of threads. f must not throw.
  template <typename F>
  void for_each(int threads, const F& f) const {
    // By address: inlined, the loops in f would be compiled twice for every type, with threads and without.
    for_each_block(
        threads,
        [](const void* function, BroadcastBlock block) { (*static_cast<const F*>(function))(block); }, &f);
  }

 private:
  static constexpr int64_t kBlockElements = 16384;
  static constexpr int64_t kMinParallel = 2 * kBlockElements;
  BroadcastBlock block(int64_t task) const;
  using BlockFunction = void (*)(const void* function, BroadcastBlock block);
  void for_each_block(int threads, BlockFunction call, const void* function) const;

  int rank_ = 0;
  int operands_ = 0;
  int64_t elements_ = 1;
  int64_t dims_[kMaxBroadcastRank] = {};
  int64_t strides_[kMaxOperands][kMaxBroadcastRank] = {};
  int64_t output_strides_[kMaxBroadcastRank] = {};
  int64_t rows_per_block_ = 1, cols_per_block_ = 1;
  int64_t row_blocks_ = 1, col_blocks_ = 1, tasks_ = 0;
};

}  // namespace plimsoll::kernels
