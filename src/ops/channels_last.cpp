#include "ops/channels_last.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/parallel.h"

namespace plimsoll {
namespace {

constexpr int64_t kBlock = 16;

// (rows, columns) -> (columns, rows), one band of kBlock rows.
void transpose_band(int64_t first, int64_t rows, int64_t columns, const float* from, float* to) {
  const int64_t last = std::min(first + kBlock, rows);
  for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
    const int64_t c1 = std::min(c0 + kBlock, columns);
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t r = first; r < last; ++r) to[c * rows + r] = from[r * columns + c];
    }
  }
}

void transpose(int64_t batch, int64_t rows, int64_t columns, const float* from, float* to, int threads) {
  if (rows == 0 || columns == 0) return;
  const int64_t bands = ceil_div(rows, kBlock);
  kernels::parallel_for(threads, batch * bands, [&](int64_t task) {
    const int64_t image = task / bands * rows * columns;
    transpose_band(task % bands * kBlock, rows, columns, from + image, to + image);
  });
}

}  // namespace

void to_channels_last(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                      int threads) {
  transpose(batch, channels, pixels, from, to, threads);
}

void to_channels_first(int64_t batch, int64_t channels, int64_t pixels, const float* from, float* to,
                       int threads) {
  transpose(batch, pixels, channels, from, to, threads);
}

}  // namespace plimsoll
