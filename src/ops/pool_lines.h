// Pooling in any layout, rank and type, for what kernels/pool.h does not take: by lines of outputs, which lie
// along the channels where those are last and along the last dimension otherwise.
#pragma once

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/pool_common.h"

namespace plimsoll {

inline constexpr int64_t kPoolBlock = 256;  // outputs at a time
inline constexpr int64_t kWideRow = 4 * kPoolBlock;

// Where a line's inputs for one tap are, and how they are numbered (MaxPool's indices).
template <typename C>
struct PoolTaps {
  const C* x;
  int64_t step;         // from an output's input to the next one's
  int64_t first, last;  // outputs of the block
  int64_t number, number_step;
};

// Elements of a window inside the input, and inside the padded input.
struct PoolCounts {
  int64_t inside, padded;
};

// A Pool has start(count), take(PoolTaps<ComputeType<T>>) for every tap, and finish(output of the block,
// counts, where it goes in y).
template <typename T, typename Pool>
class PoolLines {
 public:
  using C = ComputeType<T>;
  PoolLines(const Window& w, const SpatialStrides& numbers, const T* x, const Pool& pool)
      : w_(w),
        numbers_(numbers),
        x_(x),
        pool_(pool),
        in_(strides_of(w.rank, w.channels, w.in, w.channels_last)),
        out_(strides_of(w.rank, w.channels, w.out, w.channels_last)),
        outer_(w.channels_last ? w.rank : w.rank - 1),
        length_(w.channels_last ? w.channels : w.out[w.rank - 1]) {}

  void run(int threads) {
    const int64_t planes = w_.channels_last ? 1 : w_.channels, positions = volume(outer_, w_.out);
    if (length_ == 0) return;
    kernels::parallel_for(threads, w_.batch * planes * positions, [&](int64_t line) {
      Spatial at{};
      int64_t rest = line % positions;
      for (size_t i = outer_; i-- > 0; rest /= w_.out[i]) at[i] = rest % w_.out[i];
      line /= positions;
      pool_line(line / planes, line % planes, at);
    });
  }

 private:
  void pool_line(int64_t image, int64_t channel, const Spatial& at) const {
    Pool pool = pool_;
    int64_t to = image * out_.batch + channel * out_.channel;
    PoolCounts outer{1, 1};
    Spatial first{}, count{};
    for (size_t i = 0; i < outer_; ++i) {
      const TapRange range = tap_range(w_, i, at[i]);
      first[i] = range.first, count[i] = range.last - range.first;
      outer.inside *= count[i], outer.padded *= padded_taps(i, at[i]);
      to += at[i] * out_.spatial[i];
    }
    for (int64_t start = 0; start < length_; start += kPoolBlock) {
      const int64_t size = std::min(kPoolBlock, length_ - start);
      pool.start(size);
      Spatial tap{};
      if (outer.inside > 0) {
        do {
          int64_t from = image * in_.batch + channel * in_.channel,
                  number = image * numbers_.batch + channel * numbers_.channel;
          for (size_t i = 0; i < outer_; ++i) {
            const int64_t place = at[i] * w_.stride[i] - w_.begin[i] + (first[i] + tap[i]) * w_.dilation[i];
            from += place * in_.spatial[i], number += place * numbers_.spatial[i];
          }
          if (w_.channels_last) {
            take_channels(pool, from + start, number + start * numbers_.channel, size);
          } else {
            take_row(pool, from, number, start, size);
          }
        } while (next_position(outer_, count, tap));
      }
      finish(pool, outer, start, size, to);
    }
  }

  void take_channels(Pool& pool, int64_t from, int64_t number, int64_t size) const {
    RowOperand<T> row(x_ + from, 1, size);
    pool.take(PoolTaps<C>{row.block(0, size), 1, 0, size, number, numbers_.channel});
  }

  // All taps along the last dimension for outputs [start, start + size), of the row at `from`.
  void take_row(Pool& pool, int64_t from, int64_t number, int64_t start, int64_t size) const {
    const size_t last = w_.rank - 1;
    const int64_t stride = w_.stride[last], step = numbers_.spatial[last];
    // Halves: what all taps of the block read is widened once, unless it is much more than they need.
    const int64_t reach = (w_.kernel[last] - 1) * w_.dilation[last];
    const int64_t row_begin = std::max<int64_t>(0, start * stride - w_.begin[last]),
                  row_end = std::min(w_.in[last], (start + size - 1) * stride - w_.begin[last] + reach + 1);
    const bool is_row_wide = row_end - row_begin <= kWideRow;
    [[maybe_unused]] float row[kernels::kIsHalf<T> ? kWideRow : 1];
    if constexpr (kernels::kIsHalf<T>) {
      if (is_row_wide && row_begin < row_end) kernels::widen(x_ + from + row_begin, row, row_end - row_begin);
    }
    for (int64_t k = 0; k < w_.kernel[last]; ++k) {
      const int64_t shift = k * w_.dilation[last] - w_.begin[last];  // output j reads j * stride + shift
      const int64_t least = shift >= 0 ? 0 : ceil_div(-shift, stride);
      const int64_t most = shift >= w_.in[last] ? 0 : (w_.in[last] - 1 - shift) / stride + 1;
      const int64_t begin = std::max(least, start), end = std::min(most, start + size);
      if (begin >= end) continue;
      const int64_t place = begin * stride + shift;
      PoolTaps<C> taps{nullptr, stride, begin - start, end - start, number + place * step, stride * step};
      if constexpr (kernels::kIsHalf<T>) {
        float wide[kPoolBlock];
        if (is_row_wide) {
          taps.x = row + place - row_begin;
        } else {
          T apart[kPoolBlock];
          for (int64_t i = 0; i < end - begin; ++i) apart[i] = x_[from + place + i * stride];
          kernels::widen(apart, wide, end - begin);
          taps.x = wide, taps.step = 1;
        }
        pool.take(taps);
      } else {
        taps.x = x_ + from + place;
        pool.take(taps);
      }
    }
  }

  void finish(Pool& pool, const PoolCounts& outer, int64_t start, int64_t size, int64_t to) const {
    if (w_.channels_last) {
      for (int64_t i = 0; i < size; ++i) pool.finish(i, outer, to + start + i);
      return;
    }
    const size_t last = w_.rank - 1;
    for (int64_t i = 0; i < size; ++i) {
      const TapRange range = tap_range(w_, last, start + i);
      pool.finish(i, {outer.inside * (range.last - range.first), outer.padded * padded_taps(last, start + i)},
                  to + start + i);
    }
  }

  int64_t padded_taps(size_t i, int64_t at) const {
    const int64_t start = at * w_.stride[i] - w_.begin[i];
    if (start + (w_.kernel[i] - 1) * w_.dilation[i] < w_.in[i] + w_.end[i]) return w_.kernel[i];
    return std::min(w_.kernel[i], ceil_div(w_.in[i] + w_.end[i] - start, w_.dilation[i]));
  }

  const Window& w_;
  const SpatialStrides numbers_;
  const T* x_;
  const Pool& pool_;
  const SpatialStrides in_, out_;
  const size_t outer_;
  const int64_t length_;
};

template <typename T, typename Pool>
void pool_lines(const Window& w, const T* x, const Pool& pool, int threads) {
  PoolLines<T, Pool>(w, {}, x, pool).run(threads);
}

}  // namespace plimsoll
