// Products of bytes with weights of few bits, and rows that become bytes for them, once per target.
#if defined(PLIMSOLL_KERNELS_NBITS_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_NBITS_BYTES_INL_H_
#undef PLIMSOLL_KERNELS_NBITS_BYTES_INL_H_
#else
#define PLIMSOLL_KERNELS_NBITS_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/instructions.h"
#include "kernels/nbits_dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

struct NoBytes {
  static constexpr bool kExists = false;
};

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#if HWY_TARGET == HWY_AVX3
// AVX-512 VNNI is no target of Highway's, so that these functions name it.
#define PLIMSOLL_NBITS_BYTES [[gnu::target("avx512vnni")]]
using Bytes = __m512i;
PLIMSOLL_NBITS_BYTES HWY_INLINE Bytes load_bytes(const void* at) {
  return _mm512_loadu_si512(at);
}
template <int shift>
PLIMSOLL_NBITS_BYTES HWY_INLINE Bytes field_bytes(Bytes v, int mask) {
  return _mm512_and_si512(_mm512_srli_epi32(v, shift), _mm512_set1_epi8(static_cast<char>(mask)));
}
PLIMSOLL_NBITS_BYTES HWY_INLINE Bytes add_products(Bytes sum, Bytes weights, Bytes a) {
  return _mm512_dpbusd_epi32(sum, weights, a);
}
#else
#define PLIMSOLL_NBITS_BYTES
using Bytes = __m256i;
HWY_INLINE Bytes load_bytes(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
template <int shift>
HWY_INLINE Bytes field_bytes(Bytes v, int mask) {
  return _mm256_and_si256(_mm256_srli_epi32(v, shift), _mm256_set1_epi8(static_cast<char>(mask)));
}
// Weights of 4 bits: two products of at most 15 * 127 stay within 16 bits.
HWY_INLINE Bytes add_products(Bytes sum, Bytes weights, Bytes a) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(weights, a), _mm256_set1_epi16(1)));
}
#endif

struct ByteForm {
  static constexpr bool kExists = true, kHasFreeTiles = true;
  template <typename Field>
  using Row = ByteRow<Field>;

  template <typename Field, int64_t t, int64_t columns, int64_t rows>
  PLIMSOLL_NBITS_BYTES static HWY_INLINE void add_fields(const Bytes (&v)[columns],
                                                         const int8_t* const (&a)[rows],
                                                         Bytes (&sum)[rows][columns]) {
    Bytes w[columns];
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) w[c] = field_bytes<t * Field::kBits>(v[c], Field::kMask);
    HWY_UNROLL(4)
    for (int64_t r = 0; r < rows; ++r) {
      const Bytes x = load_bytes(a[r] + t * kNBitsVector);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) sum[r][c] = add_products(sum[r][c], w[c], x);
    }
    if constexpr (t + 1 < ByteRow<Field>::kFields) add_fields<Field, t + 1, columns, rows>(v, a, sum);
  }

  template <typename Field, int64_t columns, int64_t rows>
  PLIMSOLL_NBITS_BYTES static void tile(const NBitsMatrix& m, const BlockNumbers<Field>& numbers,
                                        const std::byte* arranged, int64_t row_bytes, int64_t column,
                                        float* sums) {
    const RealTag d;
    Real all[rows][columns];
    HWY_UNROLL(4)
    for (int64_t r = 0; r < rows; ++r) {
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) all[r][c] = hn::Zero(d);
    }
    const int64_t chunks = chunk_count<Field>(m.k);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      Bytes v[columns], sum[rows][columns];
      const int8_t* a[rows];
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) v[c] = load_weights<Field>(m, numbers, column + c, chunk).raw;
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) {
        a[r] = reinterpret_cast<const int8_t*>(arranged + r * row_bytes + chunk * ByteRow<Field>::kBytes);
        HWY_UNROLL(4)
        for (int64_t c = 0; c < columns; ++c) sum[r][c] = Bytes{};
      }
      add_fields<Field, 0, columns, rows>(v, a, sum);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) {
        const Real scale = numbers.scales(column + c, chunk);
        HWY_UNROLL(4)
        for (int64_t r = 0; r < rows; ++r) {
          const auto* row_scales =
              reinterpret_cast<const float*>(a[r] + ByteRow<Field>::kFields * kNBitsVector);
          const Real whole = hn::ConvertTo(d, hn::Vec<WholeTag>{sum[r][c]});
          all[r][c] = hn::MulAdd(hn::Mul(scale, hn::LoadU(d, row_scales)), whole, all[r][c]);
        }
      }
    }
    subtract_zeros<Field, columns, rows>(numbers, arranged + chunks * ByteRow<Field>::kBytes, row_bytes,
                                         column, 0, all);
    for (int64_t r = 0; r < rows; ++r) store_sums<columns>(all[r], sums + r * columns);
  }

  // One row, symmetric weights and free columns: as tile(), without a look at where the matrix ends.
  template <typename Field, int64_t columns>
  PLIMSOLL_NBITS_BYTES static void free_tile(const NBitsMatrix& m, const BlockNumbers<Field>& numbers,
                                             const std::byte* arranged, int64_t column, float* sums) {
    const RealTag d;
    const int64_t chunks = chunk_count<Field>(m.k), column_bytes = numbers.column_bytes();
    const int64_t blocks = numbers.blocks();
    const auto lane_blocks = numbers.lane_blocks();
    const uint8_t* weights = m.data + column * column_bytes;
    const float* scales = m.scales + column * blocks;
    const auto* a = reinterpret_cast<const int8_t*>(arranged);
    Real all[1][columns];
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) all[0][c] = hn::Zero(d);
    for (int64_t chunk = 0; chunk < chunks; ++chunk, weights += kNBitsVector, a += ByteRow<Field>::kBytes) {
      Bytes v[columns], sum[1][columns];
      const int8_t* const rows[1] = {a};
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) {
        __builtin_prefetch(weights + c * column_bytes + kNBitsAhead);
        v[c] = load_bytes(weights + c * column_bytes);
        sum[0][c] = Bytes{};
      }
      add_fields<Field, 0, columns, 1>(v, rows, sum);
      const Real row_scales =
          hn::LoadU(d, reinterpret_cast<const float*>(a + ByteRow<Field>::kFields * kNBitsVector));
      const float* own = scales + numbers.first_block(chunk);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) {
        const Real scale = hn::TableLookupLanes(hn::LoadU(d, own + c * blocks), lane_blocks);
        const Real whole = hn::ConvertTo(d, hn::Vec<WholeTag>{sum[0][c]});
        all[0][c] = hn::MulAdd(hn::Mul(scale, row_scales), whole, all[0][c]);
      }
    }
    const auto* row_sums = reinterpret_cast<const float*>(a);
    const Real middle = hn::Set(d, Field::kMiddle);
    for (int64_t first = 0; first < blocks; first += kNBitsLanes) {
      const Real own = hn::Mul(hn::LoadU(d, row_sums + first), middle);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c)
        all[0][c] = hn::NegMulAdd(hn::LoadU(d, scales + c * blocks + first), own, all[0][c]);
    }
    store_sums<columns>(all[0], sums);
  }
};
#undef PLIMSOLL_NBITS_BYTES
#endif

// Calls f with the form in which this machine multiplies weights of so many bits by bytes.
template <typename F>
auto with_byte_form([[maybe_unused]] int bits, F&& f) {
#if HWY_TARGET == HWY_AVX3
  if (may_use(kAvx512Vnni)) return f(ByteForm());
#elif HWY_TARGET == HWY_AVX2
  if (bits < 8) return f(ByteForm());
#endif
  return f(NoBytes());
}

// ---- A as bytes ----------------------------------------------------------------------------------------

HWY_INLINE float largest_size(const float* x, int64_t count) {
  const RealTag d;
  Real most = hn::Zero(d);
  int64_t i = 0;
  for (; i + kNBitsLanes <= count; i += kNBitsLanes) most = hn::Max(most, hn::Abs(hn::LoadU(d, x + i)));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// Rounded to whole numbers, half to even.
HWY_INLINE void round_to_bytes(const float* x, int64_t count, float by, int8_t* to) {
  const RealTag d;
  const hn::Rebind<int8_t, RealTag> d8;
  const Real factor = hn::Set(d, by);
  int64_t i = 0;
  for (; i + kNBitsLanes <= count; i += kNBitsLanes)
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), factor))), d8, to + i);
  for (; i < count; ++i) to[i] = static_cast<int8_t>(std::nearbyint(x[i] * by));
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
