// Products with weights of few bits, once per target. A chunk is what one vector of weights holds: 32 bits of
// it are a lane, in which 4, 8 or 16 consecutive weights are, of one block. Every lane has sums of its own,
// which the scale of its block multiplies.
#if defined(PLIMSOLL_KERNELS_NBITS_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_NBITS_DOT_INL_H_
#undef PLIMSOLL_KERNELS_NBITS_DOT_INL_H_
#else
#define PLIMSOLL_KERNELS_NBITS_DOT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/nbits_dot.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using RealTag = hn::ScalableTag<float>;
using WordTag = hn::RebindToUnsigned<RealTag>;
using WholeTag = hn::RebindToSigned<RealTag>;
using Real = hn::Vec<RealTag>;
using Word = hn::Vec<WordTag>;
inline constexpr int64_t kNBitsLanes = hn::MaxLanes(RealTag());
inline constexpr int64_t kNBitsAhead = 4096;              // bytes: how far what is read next is asked for
inline constexpr int64_t kNBitsVector = kNBitsLanes * 4;  // bytes

template <int bits>
struct FieldOf {
  static constexpr int kBits = bits;
  static constexpr int64_t kPerLane = 32 / bits, kChunk = kNBitsLanes * kPerLane;
  static constexpr unsigned kMask = (1u << bits) - 1;
  static constexpr auto kMiddle = static_cast<float>(1 << (bits - 1));
};

template <typename Field>
HWY_INLINE int64_t chunk_count(int64_t k) {
  return (k + Field::kChunk - 1) / Field::kChunk;
}

// A row of A for one chunk: element j of every lane side by side, then the sums of the lanes.
template <typename Field>
struct FloatRow {
  static constexpr int64_t kBytes = (Field::kPerLane + 1) * kNBitsVector;
  explicit FloatRow(std::byte* at) : floats(reinterpret_cast<float*>(at)) {}
  float* value(int64_t j) const { return floats + j * kNBitsLanes; }
  float* sums() const { return value(Field::kPerLane); }
  float* floats;
};

// The same in bytes: what meets the first weight of every byte, what meets the second, ...; then the scales
// of the lanes and their sums times the scales.
template <typename Field>
struct ByteRow {
  static constexpr int64_t kFields = 8 / Field::kBits, kBytes = (kFields + 2) * kNBitsVector;
  explicit ByteRow(std::byte* at) : bytes(reinterpret_cast<int8_t*>(at)) {}
  int8_t* value(int64_t field) const { return bytes + field * kNBitsVector; }
  float* scales() const { return reinterpret_cast<float*>(value(kFields)); }
  float* sums() const { return reinterpret_cast<float*>(value(kFields + 1)); }
  int8_t* bytes;
};

// Scales and zero points of the lanes of a chunk.
template <typename Field>
class LaneNumbers {
 public:
  HWY_INLINE explicit LaneNumbers(const NBitsMatrix& m) : m_(m), blocks_(m.blocks()) {
    per_chunk_ = Field::kChunk / m.block;
    zero_bytes_ = (blocks_ * Field::kBits + 7) / 8;
    for (block_shift_ = 4; (int64_t{1} << block_shift_) < m.block;) ++block_shift_;
    for (int64_t lane = 0; lane < kNBitsLanes; ++lane) {
      indices_[lane] = static_cast<int32_t>(lane * Field::kPerLane >> block_shift_);
      shifts_[lane] = static_cast<uint32_t>(indices_[lane] * Field::kBits);
    }
  }

  HWY_INLINE Real scale(int64_t column, int64_t chunk) const { return spread(m_.scales, column, chunk); }
  bool is_symmetric() const { return m_.zeros == nullptr && m_.real_zeros == nullptr; }
  // Less the number that stands for 0 in registers.
  HWY_INLINE Real zero(int64_t column, int64_t chunk, float middle) const {
    const RealTag d;
    if (m_.zeros != nullptr) return hn::Sub(packed_zero(column, chunk), hn::Set(d, middle));
    if (m_.real_zeros != nullptr) return hn::Sub(spread(m_.real_zeros, column, chunk), hn::Set(d, middle));
    return hn::Set(d, Field::kMiddle - middle);
  }

 private:
  HWY_INLINE int64_t block(int64_t chunk) const { return chunk * Field::kChunk >> block_shift_; }

  HWY_INLINE Real spread(const float* numbers, int64_t column, int64_t chunk) const {
    const RealTag d;
    const int64_t at = column * blocks_ + block(chunk);
    if (per_chunk_ <= 1) return hn::Set(d, numbers[at]);
    return hn::TableLookupLanes(load_some(numbers + at, m_.n * blocks_ - at),
                                hn::SetTableIndices(d, indices_));
  }

  // A vector, filled up with zeros where there are no more numbers.
  static HWY_INLINE Real load_some(const float* numbers, int64_t there) {
    const RealTag d;
    if (HWY_LIKELY(there >= kNBitsLanes)) return hn::LoadU(d, numbers);
    HWY_ALIGN float some[kNBitsLanes] = {};
    std::memcpy(some, numbers, static_cast<size_t>(there) * sizeof(float));
    return hn::Load(d, some);
  }

  HWY_INLINE Real packed_zero(int64_t column, int64_t chunk) const {
    const RealTag d;
    const int64_t bit = block(chunk) * Field::kBits;
    const int64_t at = column * zero_bytes_ + bit / 8;
    if (per_chunk_ <= 1) return hn::Set(d, static_cast<float>((m_.zeros[at] >> (bit % 8)) & Field::kMask));
    uint32_t word = 0;
    const int64_t there = m_.n * zero_bytes_ - at;
    if (HWY_LIKELY(there >= 4)) {
      std::memcpy(&word, m_.zeros + at, 4);
    } else {
      std::memcpy(&word, m_.zeros + at, static_cast<size_t>(there));
    }
    const WordTag dw;
    const Word all = hn::Set(dw, word >> (bit % 8));
    const Word own = hn::And(hn::Shr(all, hn::LoadU(dw, shifts_)), hn::Set(dw, Field::kMask));
    return hn::ConvertTo(d, hn::BitCast(WholeTag(), own));
  }

  const NBitsMatrix& m_;
  int64_t blocks_, per_chunk_, zero_bytes_;
  int block_shift_;
  int32_t indices_[kNBitsLanes];
  uint32_t shifts_[kNBitsLanes];
};

template <typename Field>
HWY_INLINE Word load_weights(const NBitsMatrix& m, int64_t column, int64_t chunk) {
  const WordTag d;
  const int64_t column_bytes = m.blocks() * m.block * Field::kBits / 8;
  const int64_t at = column * column_bytes + chunk * kNBitsVector;
  const int64_t left = m.n * column_bytes - at;
  __builtin_prefetch(m.data + at + kNBitsAhead);
  if (HWY_LIKELY(left >= kNBitsVector))
    return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, WordTag>(), m.data + at));
  HWY_ALIGN uint32_t words[kNBitsLanes] = {};
  std::memcpy(words, m.data + at, static_cast<size_t>(left));
  return hn::Load(d, words);
}

// ---- as floats ----------------------------------------------------------------------------------

// Weight j of every lane, less the middle.
template <typename Field, int64_t j>
HWY_INLINE Real weight_numbers(Word v) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (Field::kBits != 8) {
    // A table of what four bits mean: of two weights, the first counts.
    constexpr auto entry = [](unsigned i) { return static_cast<float>(i & Field::kMask) - Field::kMiddle; };
    const __m512 table =
        _mm512_setr_ps(entry(0), entry(1), entry(2), entry(3), entry(4), entry(5), entry(6), entry(7),
                       entry(8), entry(9), entry(10), entry(11), entry(12), entry(13), entry(14), entry(15));
    return Real{_mm512_permutexvar_ps(hn::ShiftRight<j * Field::kBits>(v).raw, table)};
  }
#endif
  const WholeTag d;
  const auto high = hn::ShiftLeft<32 - Field::kBits*(static_cast<int>(j) + 1)>(hn::BitCast(d, v));
  return hn::ConvertTo(RealTag(), hn::ShiftRight<32 - Field::kBits>(high));
}

// So that shifting with the sign takes the middle away.
template <typename Field>
HWY_INLINE Word flip(Word v) {
  if constexpr (HWY_TARGET == HWY_AVX3 && Field::kBits != 8) return v;
  constexpr uint32_t kTops = Field::kBits == 8 ? 0x80808080u : Field::kBits == 4 ? 0x88888888u : 0xaaaaaaaau;
  return hn::Xor(v, hn::Set(WordTag(), kTops));
}

template <typename Field, int64_t j, int64_t columns, int64_t rows>
HWY_INLINE void add_weights(const Word (&v)[columns], const float* const (&a)[rows],
                            Real (&sum)[rows][columns]) {
  Real w[columns];
  HWY_UNROLL(4)
  for (int64_t c = 0; c < columns; ++c) w[c] = weight_numbers<Field, j>(v[c]);
  HWY_UNROLL(4)
  for (int64_t r = 0; r < rows; ++r) {
    const Real x = hn::LoadU(RealTag(), a[r] + j * kNBitsLanes);
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c)
      sum[r][c] = j == 0 ? hn::Mul(w[c], x) : hn::MulAdd(w[c], x, sum[r][c]);
  }
  if constexpr (j + 1 < Field::kPerLane) add_weights<Field, j + 1, columns, rows>(v, a, sum);
}

template <typename Field, int64_t columns, int64_t rows>
void float_tile(const NBitsMatrix& m, const std::byte* arranged, int64_t row_bytes, int64_t column,
                float* sums) {
  const RealTag d;
  const LaneNumbers<Field> numbers(m);
  const bool is_symmetric = numbers.is_symmetric();
  Real all[rows][columns];
  HWY_UNROLL(4)
  for (int64_t r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) all[r][c] = hn::Zero(d);
  }
  const int64_t chunks = chunk_count<Field>(m.k);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Word v[columns];
    const float* a[rows];
    Real sum[rows][columns];
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) v[c] = flip<Field>(load_weights<Field>(m, column + c, chunk));
    HWY_UNROLL(4)
    for (int64_t r = 0; r < rows; ++r)
      a[r] = reinterpret_cast<const float*>(arranged + r * row_bytes + chunk * FloatRow<Field>::kBytes);
    add_weights<Field, 0, columns, rows>(v, a, sum);
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) {
      const Real scale = numbers.scale(column + c, chunk);
      const Real zero = is_symmetric ? hn::Zero(d) : numbers.zero(column + c, chunk, Field::kMiddle);
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) {
        const Real row_sums = hn::LoadU(d, a[r] + Field::kPerLane * kNBitsLanes);
        all[r][c] = hn::MulAdd(scale, hn::NegMulAdd(zero, row_sums, sum[r][c]), all[r][c]);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) sums[r * columns + c] = hn::GetLane(hn::SumOfLanes(d, all[r][c]));
  }
}

// Rows in groups, columns as many at a time as registers hold.
template <typename Form, typename Field, int64_t columns, int64_t rows>
HWY_INLINE void store_tile(const NBitsMatrix& m, const NBitsRows& p, int64_t row_bytes, int64_t row,
                           int64_t column) {
  float sums[rows * columns];
  const auto* a = static_cast<const std::byte*>(p.arranged) + row * row_bytes;
  Form::template tile<Field, columns, rows>(m, a, row_bytes, column, sums);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      p.y[(row + r) * p.y_stride + column + c] =
          sums[r * columns + c] + (p.bias != nullptr ? p.bias[column + c] : 0);
  }
}

template <typename Form, typename Field, int64_t columns>
void all_rows(const NBitsMatrix& m, const NBitsRows& p, int64_t row_bytes, int64_t column) {
  constexpr int64_t kRows = 4, kTogether = columns > 2 ? 2 : columns;
  int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    for (int64_t c = 0; c < columns; c += kTogether)
      store_tile<Form, Field, kTogether, kRows>(m, p, row_bytes, row, column + c);
  }
  for (; row + 2 <= p.rows; row += 2) {
    for (int64_t c = 0; c < columns; c += kTogether)
      store_tile<Form, Field, kTogether, 2>(m, p, row_bytes, row, column + c);
  }
  for (; row < p.rows; ++row) store_tile<Form, Field, columns, 1>(m, p, row_bytes, row, column);
}

struct FloatForm {
  template <typename Field>
  using Row = FloatRow<Field>;
  template <typename Field, int64_t columns, int64_t rows>
  static HWY_INLINE void tile(const NBitsMatrix& m, const std::byte* a, int64_t row_bytes, int64_t column,
                              float* sums) {
    float_tile<Field, columns, rows>(m, a, row_bytes, column, sums);
  }
};

// ---- as bytes -----------------------------------------------------------------------------------

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
  static constexpr bool kExists = true;
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
  PLIMSOLL_NBITS_BYTES static void tile(const NBitsMatrix& m, const std::byte* arranged, int64_t row_bytes,
                                        int64_t column, float* sums) {
    const RealTag d;
    const LaneNumbers<Field> numbers(m);
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
      for (int64_t c = 0; c < columns; ++c) v[c] = load_weights<Field>(m, column + c, chunk).raw;
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) {
        a[r] = reinterpret_cast<const int8_t*>(arranged + r * row_bytes + chunk * ByteRow<Field>::kBytes);
        HWY_UNROLL(4)
        for (int64_t c = 0; c < columns; ++c) sum[r][c] = Bytes{};
      }
      add_fields<Field, 0, columns, rows>(v, a, sum);
      HWY_UNROLL(4)
      for (int64_t c = 0; c < columns; ++c) {
        const Real scale = numbers.scale(column + c, chunk), zero = numbers.zero(column + c, chunk, 0);
        HWY_UNROLL(4)
        for (int64_t r = 0; r < rows; ++r) {
          const auto* row_scales =
              reinterpret_cast<const float*>(a[r] + ByteRow<Field>::kFields * kNBitsVector);
          const Real whole = hn::ConvertTo(d, hn::Vec<WholeTag>{sum[r][c]});
          const Real scaled = hn::Mul(whole, hn::LoadU(d, row_scales));
          const Real off = hn::NegMulAdd(zero, hn::LoadU(d, row_scales + kNBitsLanes), scaled);
          all[r][c] = hn::MulAdd(scale, off, all[r][c]);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) sums[r * columns + c] = hn::GetLane(hn::SumOfLanes(d, all[r][c]));
    }
  }
};
#undef PLIMSOLL_NBITS_BYTES
#endif

// Calls f with the form in which this machine multiplies weights of so many bits by bytes.
template <typename F>
auto with_byte_form([[maybe_unused]] int bits, F&& f) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512vnni")) return f(ByteForm());
#elif HWY_TARGET == HWY_AVX2
  if (bits < 8) return f(ByteForm());
#endif
  return f(NoBytes());
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
