#include "kernels/nbits_tiles.h"

#include <algorithm>
#include <cstring>

#include "kernels/block_dequantize.h"
#include "kernels/instructions.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plimsoll::kernels {

bool nbits_has_tiles() {
  return may_use(kAmxBf16);
}

#if defined(__x86_64__)
namespace {

#define PLIMSOLL_TILES [[gnu::target("avx512f,avx512bw,avx512bf16,amx-tile,amx-bf16")]]

constexpr int64_t kStep = 32, kPanel = 32, kTileRows = 16;  // of k, of columns, of rows

// Pairs of neighbours in 32 bits; `count` floats, then zeros up to a whole step.
PLIMSOLL_TILES void round_floats(const float* x, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += kStep) {
    const int64_t left = count - i;
    const auto low = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
    const auto high = static_cast<__mmask16>(left >= 32 ? 0xffff : left <= 16 ? 0 : (1u << (left - 16)) - 1);
    const __m512 first = _mm512_maskz_loadu_ps(low, x + i), second = _mm512_maskz_loadu_ps(high, x + i + 16);
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
  }
}

// Sixteen columns of pairs become rows of sixteen: element [i][j] goes to [j][i].
PLIMSOLL_TILES void turn(const uint32_t* from, int64_t stride, uint32_t* to, int64_t to_stride) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * stride);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Blocks of four: r[4 * a + b] has the places b, 4 + b, 8 + b and 12 + b of the columns 4 * a to 4 * a + 3.
#pragma GCC unroll 4
  for (int b = 0; b < 4; ++b) {
    const __m512i low0 = _mm512_shuffle_i32x4(r[b], r[4 + b], 0x88),
                  low1 = _mm512_shuffle_i32x4(r[8 + b], r[12 + b], 0x88),
                  high0 = _mm512_shuffle_i32x4(r[b], r[4 + b], 0xdd),
                  high1 = _mm512_shuffle_i32x4(r[8 + b], r[12 + b], 0xdd);
    _mm512_storeu_si512(to + b * to_stride, _mm512_shuffle_i32x4(low0, low1, 0x88));
    _mm512_storeu_si512(to + (8 + b) * to_stride, _mm512_shuffle_i32x4(low0, low1, 0xdd));
    _mm512_storeu_si512(to + (4 + b) * to_stride, _mm512_shuffle_i32x4(high0, high1, 0x88));
    _mm512_storeu_si512(to + (12 + b) * to_stride, _mm512_shuffle_i32x4(high0, high1, 0xdd));
  }
}

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// 32 rows of A times a panel of [k / 2][32] pairs; sums: rows of 32.
PLIMSOLL_TILES void multiply_tile(const uint16_t* a, int64_t k, const uint32_t* b, const float* first,
                                  float* sums) {
  const int64_t stride = k * 2;
  const uint16_t* lower = a + kTileRows * k;
  asm volatile("" ::: "memory");  // loads of tiles do not say what they read
  _tile_loadd(0, first, 0);
  _tile_loadd(1, first + 16, 0);
  _tile_loadd(2, first, 0);
  _tile_loadd(3, first + 16, 0);
  for (int64_t i = 0; i < k; i += kStep, b += kStep / 2 * kPanel) {
    _tile_loadd(4, a + i, stride);
    _tile_loadd(5, lower + i, stride);
    _tile_loadd(6, b, kPanel * 4);
    _tile_loadd(7, b + 16, kPanel * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kPanel * 4);
  _tile_stored(1, sums + 16, kPanel * 4);
  _tile_stored(2, sums + 512, kPanel * 4);
  _tile_stored(3, sums + 528, kPanel * 4);
}

// Columns [first, first + count) as a panel of [k / 2][32] pairs, zeros behind them.
PLIMSOLL_TILES void fill_panel(const NBitsMatrix& m, int64_t first, int64_t count, uint32_t* panel) {
  const int64_t k = NBitsTilesScratch::padded(m.k), pairs = k / 2;
  uint32_t* columns = panel + pairs * kPanel;
  auto* floats = reinterpret_cast<float*>(columns + pairs * 16);
  for (int64_t half = 0; half < kPanel; half += 16) {
    for (int64_t i = 0; i < 16; ++i) {
      auto* to = reinterpret_cast<uint16_t*>(columns + i * pairs);
      if (half + i >= count) {
        std::memset(to, 0, static_cast<size_t>(k) * sizeof *to);
        continue;
      }
      dequantize_column(m, first + half + i, floats);
      round_floats(floats, m.k, to);
    }
    for (int64_t at = 0; at < pairs; at += 16) turn(columns + at, pairs, panel + at * kPanel + half, kPanel);
  }
}

PLIMSOLL_TILES void multiply_panels(const NBitsMatrix& m, const uint16_t* a, int64_t rows, const float* bias,
                                    float* y, int64_t y_stride, int64_t first, int64_t last,
                                    uint32_t* panel) {
  const int64_t k = NBitsTilesScratch::padded(m.k);
  const TileShapes shapes;
  asm volatile("" ::"r"(&shapes) : "memory");  // the instruction does not say that it reads all of it
  _tile_loadconfig(&shapes);
  alignas(64) float start[kPanel], sums[2 * kTileRows * kPanel];
  for (int64_t col = first; col < last; col += kPanel) {
    const int64_t cols = std::min(kPanel, last - col);
    for (int64_t i = 0; i < kPanel; ++i) start[i] = bias != nullptr && i < cols ? bias[col + i] : 0;
    fill_panel(m, col, cols, panel);
    for (int64_t row = 0; row < rows; row += 2 * kTileRows) {
      multiply_tile(a + row * k, k, panel, start, sums);
      const int64_t count = std::min(2 * kTileRows, rows - row);
      for (int64_t r = 0; r < count; ++r)
        std::memcpy(y + (row + r) * y_stride + col, sums + r * kPanel,
                    static_cast<size_t>(cols) * sizeof(float));
    }
  }
  _tile_release();
}

}  // namespace

void nbits_round_rows(int64_t k, const float* a, int64_t first, int64_t last, void* rounded) {
  auto* to = static_cast<uint16_t*>(rounded);
  const int64_t stride = NBitsTilesScratch::padded(k);
  for (int64_t row = first; row < last; ++row) round_floats(a + row * k, k, to + row * stride);
}

void nbits_multiply_tiles(const NBitsMatrix& matrix, const void* rounded, int64_t rows, const float* bias,
                          float* y, int64_t y_stride, int64_t first, int64_t last, void* scratch) {
  multiply_panels(matrix, static_cast<const uint16_t*>(rounded), rows, bias, y, y_stride, first, last,
                  static_cast<uint32_t*>(scratch));
}
#else
void nbits_round_rows(int64_t, const float*, int64_t, int64_t, void*) {}
void nbits_multiply_tiles(const NBitsMatrix&, const void*, int64_t, const float*, float*, int64_t, int64_t,
                          int64_t, void*) {}
#endif

}  // namespace plimsoll::kernels
