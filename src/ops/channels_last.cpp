#include "ops/channels_last.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/parallel.h"

namespace plimsoll {
namespace {

constexpr int64_t kBlock = 16;

// (rows, columns) -> (columns, rows), one band of kBlock rows.
template <typename T>
void transpose_band(int64_t first, int64_t rows, int64_t columns, const T* from, T* to) {
  const int64_t last = std::min(first + kBlock, rows);
  for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
    const int64_t c1 = std::min(c0 + kBlock, columns);
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t r = first; r < last; ++r) to[c * rows + r] = from[r * columns + c];
    }
  }
}

template <typename T>
void transpose(int64_t batch, int64_t rows, int64_t columns, const T* from, T* to, int threads) {
  if (rows == 0 || columns == 0) return;
  const int64_t bands = ceil_div(rows, kBlock);
  kernels::parallel_for(threads, batch * bands, [&](int64_t task) {
    const int64_t image = task / bands * rows * columns;
    transpose_band(task % bands * kBlock, rows, columns, from + image, to + image);
  });
}

}  // namespace

void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint16_t* from, uint16_t* to,
                      int threads) {
  transpose(batch, rows, columns, from, to, threads);
}

void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint32_t* from, uint32_t* to,
                      int threads) {
  transpose(batch, rows, columns, from, to, threads);
}

void transpose_images(int64_t batch, int64_t rows, int64_t columns, const uint64_t* from, uint64_t* to,
                      int threads) {
  transpose(batch, rows, columns, from, to, threads);
}

}  // namespace plimsoll
