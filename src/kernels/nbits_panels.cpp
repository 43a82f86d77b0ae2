#include "kernels/nbits_panels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nbits_panels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/nbits_bytes-inl.h"
#include "kernels/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

using Scratch = NBitsPanelsScratch;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

// A row as it lies.
struct PanelRow {
  PanelRow(const NBitsMatrix& m, std::byte* at)
      : bytes(reinterpret_cast<int8_t*>(at)),
        scales(reinterpret_cast<float*>(at + Scratch::padded(m))),
        sums(scales + m.blocks()) {}
  int8_t* bytes;
  float *scales, *sums;
};

struct Panel {
  Panel(const NBitsMatrix& m, std::byte* at)
      : bytes(reinterpret_cast<uint8_t*>(at)),
        scales(reinterpret_cast<float*>(at + Scratch::kColumns * Scratch::padded(m))),
        zeros(scales + Scratch::kColumns * m.blocks()) {}
  uint8_t* bytes;         // [groups of four][columns][4]
  float *scales, *zeros;  // [blocks][columns]
};

void quantize_rows(const NBitsMatrix& m, const float* a, int64_t first, int64_t last, std::byte* rows) {
  for (int64_t r = first; r < last; ++r) {
    const PanelRow row(m, rows + r * Scratch::row_bytes(m));
    std::memset(row.bytes + m.k, 0, static_cast<size_t>(Scratch::padded(m) - m.k));
    for (int64_t block = 0; block < m.blocks(); ++block) {
      const int64_t at = block * m.block, count = std::min(m.block, m.k - at);
      const float* from = a + r * m.k + at;
      const float most = largest_size(from, count);
      round_to_bytes(from, count, most > 0 ? 127 / most : 0, row.bytes + at);
      int32_t sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += row.bytes[at + i];
      row.scales[block] = most / 127;
      row.sums[block] = static_cast<float>(sum) * row.scales[block];
    }
  }
}

// Sixteen numbers of a column.
HWY_INLINE __m128i sixteen(const uint8_t* data, int bits) {
  const auto* from = reinterpret_cast<const __m128i*>(data);
  if (bits == 8) return _mm_loadu_si128(from);
  if (bits == 4) {
    const __m128i pairs = _mm_loadl_epi64(from), mask = _mm_set1_epi8(0x0f);
    return _mm_unpacklo_epi8(_mm_and_si128(pairs, mask), _mm_and_si128(_mm_srli_epi16(pairs, 4), mask));
  }
  constexpr uint64_t kMask = 0x0303030303030303;
  uint32_t word;
  std::memcpy(&word, data, sizeof word);
  return _mm_set_epi64x(static_cast<int64_t>(_pdep_u64(word >> 16, kMask)),
                        static_cast<int64_t>(_pdep_u64(word, kMask)));
}

// Four columns, sixteen rows of them at a time.
void fill_columns(const NBitsMatrix& m, int64_t column, int64_t place, uint8_t* to) {
  const int64_t bytes = Scratch::padded(m) * m.bits / 8, step = 2 * m.bits;
  const uint8_t* from[4];
  for (int64_t c = 0; c < 4; ++c) from[c] = m.data + std::min(column + c, m.n - 1) * bytes;
  constexpr int64_t kGroup = 4 * Scratch::kColumns;
  to += 4 * place;
  for (int64_t k = 0; k < Scratch::padded(m); k += 16, to += 4 * kGroup) {
    __m128i v[4];
    for (int64_t c = 0; c < 4; ++c, from[c - 1] += step) v[c] = sixteen(from[c], m.bits);
    const __m128i low01 = _mm_unpacklo_epi32(v[0], v[1]), high01 = _mm_unpackhi_epi32(v[0], v[1]),
                  low23 = _mm_unpacklo_epi32(v[2], v[3]), high23 = _mm_unpackhi_epi32(v[2], v[3]);
    const __m128i groups[] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                              _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
    for (int64_t g = 0; g < 4; ++g) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + g * kGroup), groups[g]);
  }
}

HWY_INLINE float zero_of(const NBitsMatrix& m, int64_t column, int64_t block) {
  if (m.real_zeros != nullptr) return m.real_zeros[column * m.blocks() + block];
  if (m.zeros == nullptr) return static_cast<float>(1 << (m.bits - 1));
  const uint8_t* row = m.zeros + column * ((m.blocks() * m.bits + 7) / 8);
  const int per_byte = 8 / m.bits;
  return static_cast<float>((row[block / per_byte] >> (block % per_byte * m.bits)) & ((1 << m.bits) - 1));
}

// What is behind the last column repeats it.
void fill_panel(const NBitsMatrix& m, int64_t column, const Panel& panel) {
  for (int64_t c = 0; c < Scratch::kColumns; c += 4) fill_columns(m, column + c, c, panel.bytes);
  for (int64_t c = 0; c < Scratch::kColumns; ++c) {
    const int64_t at = std::min(column + c, m.n - 1);
    for (int64_t block = 0; block < m.blocks(); ++block) {
      const float scale = m.scales[at * m.blocks() + block];
      panel.scales[block * Scratch::kColumns + c] = scale;
      panel.zeros[block * Scratch::kColumns + c] = scale * zero_of(m, at, block);
    }
  }
}

// Rows of bytes times a panel: kColumns results each.
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kPanelRows = 6;  // sums and results of two vectors each are in 24 registers

template <int64_t rows>
PLIMSOLL_VNNI void panel_tile(const NBitsMatrix& m, const std::byte* a, const Panel& panel, const float* bias,
                              float* y) {
  const int64_t row_bytes = Scratch::row_bytes(m), blocks = m.blocks(), groups = m.block / 4;
  const auto* bytes = reinterpret_cast<const int8_t*>(a);
  const auto* numbers = reinterpret_cast<const float*>(a + Scratch::padded(m));
  const int64_t row_floats = row_bytes / 4;
  __m512 all[rows][2];
#pragma GCC unroll 8
  for (int64_t r = 0; r < rows; ++r)
    all[r][0] = _mm512_loadu_ps(bias), all[r][1] = _mm512_loadu_ps(bias + 16);
  const uint8_t* b = panel.bytes;
  for (int64_t block = 0; block < blocks; ++block, ++numbers) {
    __m512i sum[rows][2];
#pragma GCC unroll 8
    for (int64_t r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    for (int64_t g = 0; g < groups; ++g, b += 4 * Scratch::kColumns, bytes += 4) {
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 8
      for (int64_t r = 0; r < rows; ++r) {
        int32_t quad;
        std::memcpy(&quad, bytes + r * row_bytes, sizeof quad);
        const __m512i value = _mm512_set1_epi32(quad);
        sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], b0, value);
        sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], b1, value);
      }
    }
    const float *scales = panel.scales + block * Scratch::kColumns,
                *zeros = panel.zeros + block * Scratch::kColumns;
    const __m512 scale0 = _mm512_loadu_ps(scales), scale1 = _mm512_loadu_ps(scales + 16);
#pragma GCC unroll 8
    for (int64_t r = 0; r < rows; ++r) {
      const __m512 by = _mm512_set1_ps(numbers[r * row_floats]);
      const __m512 less = _mm512_set1_ps(numbers[r * row_floats + blocks]);
      all[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][0]), _mm512_mul_ps(scale0, by), all[r][0]);
      all[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][1]), _mm512_mul_ps(scale1, by), all[r][1]);
      all[r][0] = _mm512_fnmadd_ps(_mm512_loadu_ps(zeros), less, all[r][0]);
      all[r][1] = _mm512_fnmadd_ps(_mm512_loadu_ps(zeros + 16), less, all[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < rows; ++r) {
    _mm512_storeu_ps(y + r * Scratch::kColumns, all[r][0]);
    _mm512_storeu_ps(y + r * Scratch::kColumns + 16, all[r][1]);
  }
}

#else
constexpr int64_t kPanelRows = 4;  // sums of two vectors each are in 8 registers

// Two vectors of columns. Weights of up to 4 bits: 32 products of a block add up to 8 * 2 * 15 * 127 in 16
// bits.
template <int64_t rows>
void half_panel_tile(const NBitsMatrix& m, const std::byte* a, const Panel& panel, int64_t place,
                     const float* bias, float* y) {
  constexpr int64_t kMostGroups = 8;
  const int64_t row_bytes = Scratch::row_bytes(m), row_floats = row_bytes / 4, blocks = m.blocks();
  const int64_t groups = std::min(m.block / 4, kMostGroups), parts = m.block / 4 / groups;
  const auto* bytes = reinterpret_cast<const int8_t*>(a);
  const auto* numbers = reinterpret_cast<const float*>(a + Scratch::padded(m));
  const uint8_t* b = panel.bytes + 4 * place;
  const __m256i ones = _mm256_set1_epi16(1);
  const auto load = [](const uint8_t* at)
                        HWY_ATTR { return _mm256_load_si256(reinterpret_cast<const __m256i*>(at)); };
  HWY_ALIGN float all[rows][16];
  for (int64_t r = 0; r < rows; ++r) std::memcpy(all[r], bias + place, sizeof all[r]);
  for (int64_t block = 0; block < blocks; ++block, ++numbers) {
    const float *scales = panel.scales + block * Scratch::kColumns + place,
                *zeros = panel.zeros + block * Scratch::kColumns + place;
    for (int64_t part = 0; part < parts; ++part) {
      __m256i sum[rows][2];
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
      for (int64_t g = 0; g < groups; ++g, b += 4 * Scratch::kColumns, bytes += 4) {
        const __m256i b0 = load(b), b1 = load(b + 32);
        HWY_UNROLL(4)
        for (int64_t r = 0; r < rows; ++r) {
          int32_t quad;
          std::memcpy(&quad, bytes + r * row_bytes, sizeof quad);
          const __m256i value = _mm256_set1_epi32(quad);
          sum[r][0] = _mm256_add_epi16(sum[r][0], _mm256_maddubs_epi16(b0, value));
          sum[r][1] = _mm256_add_epi16(sum[r][1], _mm256_maddubs_epi16(b1, value));
        }
      }
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) {
        const __m256 by = _mm256_set1_ps(numbers[r * row_floats]);
        HWY_UNROLL(2)
        for (int64_t v = 0; v < 2; ++v) {
          const __m256 whole = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[r][v], ones));
          const __m256 scale = _mm256_mul_ps(_mm256_load_ps(scales + 8 * v), by);
          float* to = all[r] + 8 * v;
          _mm256_store_ps(to, _mm256_fmadd_ps(whole, scale, _mm256_load_ps(to)));
        }
      }
    }
    HWY_UNROLL(4)
    for (int64_t r = 0; r < rows; ++r) {
      const __m256 less = _mm256_set1_ps(numbers[r * row_floats + blocks]);
      for (int64_t v = 0; v < 2; ++v) {
        float* to = all[r] + 8 * v;
        _mm256_store_ps(to, _mm256_fnmadd_ps(_mm256_load_ps(zeros + 8 * v), less, _mm256_load_ps(to)));
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) std::memcpy(y + r * Scratch::kColumns + place, all[r], sizeof all[r]);
}

template <int64_t rows>
void panel_tile(const NBitsMatrix& m, const std::byte* a, const Panel& panel, const float* bias, float* y) {
  half_panel_tile<rows>(m, a, panel, 0, bias, y);
  half_panel_tile<rows>(m, a, panel, 16, bias, y);
}
#endif

using PanelTile = void (*)(const NBitsMatrix&, const std::byte*, const Panel&, const float*, float*);
template <size_t... i>
constexpr std::array<PanelTile, sizeof...(i)> panel_tiles(std::index_sequence<i...>) {
  return {panel_tile<static_cast<int64_t>(i) + 1>...};
}

void multiply_panels(const NBitsMatrix& m, const std::byte* rows, int64_t count, const float* bias, float* y,
                     int64_t y_stride, int64_t first, int64_t last, std::byte* scratch) {
  constexpr auto kTiles = panel_tiles(std::make_index_sequence<kPanelRows>());
  const Panel panel(m, scratch);
  for (int64_t column = first; column < last; column += Scratch::kColumns) {
    const auto columns = static_cast<size_t>(std::min(Scratch::kColumns, last - column));
    fill_panel(m, column, panel);
    float first_sums[Scratch::kColumns] = {}, sums[kPanelRows * Scratch::kColumns];
    if (bias != nullptr) std::memcpy(first_sums, bias + column, columns * sizeof(float));
    for (int64_t row = 0; row < count; row += kPanelRows) {
      const int64_t here = std::min(kPanelRows, count - row);
      kTiles[static_cast<size_t>(here - 1)](m, rows + row * Scratch::row_bytes(m), panel, first_sums, sums);
      for (int64_t r = 0; r < here; ++r)
        std::memcpy(y + (row + r) * y_stride + column, sums + r * Scratch::kColumns, columns * sizeof(float));
    }
  }
}
#else
void quantize_rows(const NBitsMatrix&, const float*, int64_t, int64_t, std::byte*) {}
void multiply_panels(const NBitsMatrix&, const std::byte*, int64_t, const float*, float*, int64_t, int64_t,
                     int64_t, std::byte*) {}
#endif

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {
HWY_EXPORT(quantize_rows);
HWY_EXPORT(multiply_panels);
}  // namespace

void nbits_quantize_rows(const NBitsMatrix& matrix, const float* a, int64_t first, int64_t last, void* rows) {
  HWY_DYNAMIC_DISPATCH(quantize_rows)(matrix, a, first, last, static_cast<std::byte*>(rows));
}

void nbits_multiply_panels(const NBitsMatrix& matrix, const void* rows, int64_t count, const float* bias,
                           float* y, int64_t y_stride, int64_t first, int64_t last, void* scratch) {
  HWY_DYNAMIC_DISPATCH(multiply_panels)
  (matrix, static_cast<const std::byte*>(rows), count, bias, y, y_stride, first, last,
   static_cast<std::byte*>(scratch));
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
