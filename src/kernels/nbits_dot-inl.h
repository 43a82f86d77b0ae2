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

template <typename Field>
HWY_INLINE int64_t padded_blocks(const NBitsMatrix& m) {
  return (m.blocks() + kNBitsLanes - 1) / kNBitsLanes * kNBitsLanes;
}

// A row of A: its chunks, then the sums of its blocks, filled up with zeros.
// A chunk of it: element j of every lane side by side.
template <typename Field>
struct FloatRow {
  static constexpr int64_t kBytes = Field::kPerLane * kNBitsVector;
  explicit FloatRow(std::byte* at) : floats(reinterpret_cast<float*>(at)) {}
  float* value(int64_t j) const { return floats + j * kNBitsLanes; }
  float* floats;
};

// The same in bytes: what meets the first weight of every byte, what meets the second, ...; then the scales
// of the lanes.
template <typename Field>
struct ByteRow {
  static constexpr int64_t kFields = 8 / Field::kBits, kBytes = (kFields + 1) * kNBitsVector;
  explicit ByteRow(std::byte* at) : bytes(reinterpret_cast<int8_t*>(at)) {}
  int8_t* value(int64_t field) const { return bytes + field * kNBitsVector; }
  float* scales() const { return reinterpret_cast<float*>(value(kFields)); }
  int8_t* bytes;
};

// Scales and zero points, and where weights are. Made once for many columns: its tables cost as much as a
// short column.
template <typename Field>
class BlockNumbers {
 public:
  HWY_INLINE explicit BlockNumbers(const NBitsMatrix& m) : m_(m), blocks_(m.blocks()) {
    per_chunk_ = Field::kChunk / m.block;
    column_bytes_ = blocks_ * m.block * Field::kBits / 8;
    zero_bytes_ = (blocks_ * Field::kBits + 7) / 8;
    for (block_shift_ = 4; (int64_t{1} << block_shift_) < m.block;) ++block_shift_;
    for (int64_t lane = 0; lane < kNBitsLanes; ++lane) {
      lane_blocks_[lane] = static_cast<int32_t>(lane * Field::kPerLane >> block_shift_);
      shifts_[lane] = static_cast<uint32_t>(lane * Field::kBits % 32);
    }
  }

  // Columns behind which as much can be read as whole vectors of weights and scales take.
  int64_t free_columns() const {
    const int64_t chunks = chunk_count<Field>(m_.k);
    const int64_t weights = chunks * kNBitsVector - column_bytes_;
    const int64_t last = ((chunks - 1) * Field::kChunk >> block_shift_) + kNBitsLanes;
    const int64_t scales = std::max(last, padded_blocks<Field>(m_)) - blocks_;
    const int64_t behind = std::max((weights + column_bytes_ - 1) / column_bytes_,
                                    (std::max<int64_t>(scales, 0) + blocks_ - 1) / blocks_);
    return std::max<int64_t>(0, m_.n - behind);
  }
  // The block of a lane, among those of a chunk.
  HWY_INLINE auto lane_blocks() const { return hn::SetTableIndices(RealTag(), lane_blocks_); }
  int64_t first_block(int64_t chunk) const { return chunk * Field::kChunk >> block_shift_; }

  int64_t blocks() const { return blocks_; }
  int64_t column_bytes() const { return column_bytes_; }
  bool is_symmetric() const { return m_.zeros == nullptr && m_.real_zeros == nullptr; }

  // The scales of the lanes of a chunk.
  HWY_INLINE Real scales(int64_t column, int64_t chunk) const {
    const RealTag d;
    const int64_t at = column * blocks_ + (chunk * Field::kChunk >> block_shift_);
    if (per_chunk_ <= 1) return hn::Set(d, m_.scales[at]);
    return hn::TableLookupLanes(load_some(m_.scales + at, m_.n * blocks_ - at),
                                hn::SetTableIndices(d, lane_blocks_));
  }

  // Of a vector of blocks from `first` on: scale times zero point, less the number that stands for 0 in
  // registers.
  HWY_INLINE Real scaled_zeros(int64_t column, int64_t first, float middle) const {
    const RealTag d;
    const int64_t at = column * blocks_ + first, all = m_.n * blocks_;
    Real zeros = hn::Set(d, Field::kMiddle);
    if (m_.zeros != nullptr) zeros = packed_zeros(column, first);
    if (m_.real_zeros != nullptr) zeros = load_some(m_.real_zeros + at, all - at);
    return hn::Mul(load_some(m_.scales + at, all - at), hn::Sub(zeros, hn::Set(d, middle)));
  }

 private:
  // A vector, filled up with zeros where there are no more numbers.
  static HWY_INLINE Real load_some(const float* numbers, int64_t there) {
    const RealTag d;
    if (HWY_LIKELY(there >= kNBitsLanes)) return hn::LoadU(d, numbers);
    HWY_ALIGN float some[kNBitsLanes] = {};
    std::memcpy(some, numbers, static_cast<size_t>(there) * sizeof(float));
    return hn::Load(d, some);
  }

  HWY_INLINE Real packed_zeros(int64_t column, int64_t first) const {
    constexpr int64_t kBytes = kNBitsLanes * Field::kBits / 8;  // that a vector of them has
    const int64_t at = column * zero_bytes_ + first * Field::kBits / 8, there = m_.n * zero_bytes_ - at;
    HWY_ALIGN uint8_t bytes[16] = {};
    const uint8_t* from = m_.zeros + at;
    if (HWY_UNLIKELY(there < kBytes)) {
      std::memcpy(bytes, from, static_cast<size_t>(there));
      from = bytes;
    }
    const RealTag d;
    const WordTag dw;
    if constexpr (Field::kBits == 8) {
      const hn::Rebind<uint8_t, WordTag> d8;
      return hn::ConvertTo(d, hn::BitCast(WholeTag(), hn::PromoteTo(dw, hn::LoadU(d8, from))));
    } else {
      const Word own =
          hn::And(hn::Shr(spread_words<kBytes>(from), hn::LoadU(dw, shifts_)), hn::Set(dw, Field::kMask));
      return hn::ConvertTo(d, hn::BitCast(WholeTag(), own));
    }
  }

  // Each lane has the 32 bits in which its number is.
  template <int64_t bytes>
  static HWY_INLINE Word spread_words(const uint8_t* from) {
    const WordTag d;
    if constexpr (bytes <= 4) {
      uint32_t word = 0;
      std::memcpy(&word, from, bytes);
      return hn::Set(d, word);
    } else {
      static_assert(bytes == 8);
      uint32_t low, high;
      std::memcpy(&low, from, 4);
      std::memcpy(&high, from + 4, 4);
      const hn::Half<WordTag> half;
      return hn::Combine(d, hn::Set(half, high), hn::Set(half, low));
    }
  }

  const NBitsMatrix& m_;
  int64_t blocks_, per_chunk_, zero_bytes_, column_bytes_;
  int block_shift_;
  int32_t lane_blocks_[kNBitsLanes];
  uint32_t shifts_[kNBitsLanes];
};

// Takes away what the zero points make of each row and column.
template <typename Field, int64_t columns, int64_t rows>
HWY_INLINE void subtract_zeros(const BlockNumbers<Field>& numbers, const std::byte* sums, int64_t row_bytes,
                               int64_t column, float middle, Real (&all)[rows][columns]) {
  for (int64_t first = 0; first < numbers.blocks(); first += kNBitsLanes) {
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) {
      const Real zeros = numbers.scaled_zeros(column + c, first, middle);
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) {
        const auto* own = reinterpret_cast<const float*>(sums + r * row_bytes) + first;
        all[r][c] = hn::NegMulAdd(zeros, hn::LoadU(RealTag(), own), all[r][c]);
      }
    }
  }
}

template <typename Field>
HWY_INLINE Word load_weights(const NBitsMatrix& m, const BlockNumbers<Field>& numbers, int64_t column,
                             int64_t chunk) {
  const WordTag d;
  const int64_t at = column * numbers.column_bytes() + chunk * kNBitsVector;
  const int64_t left = m.n * numbers.column_bytes() - at;
  __builtin_prefetch(m.data + at + kNBitsAhead);
  if (HWY_LIKELY(left >= kNBitsVector))
    return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, WordTag>(), m.data + at));
  HWY_ALIGN uint32_t words[kNBitsLanes] = {};
  std::memcpy(words, m.data + at, static_cast<size_t>(left));
  return hn::Load(d, words);
}

template <class D>
HWY_INLINE hn::Vec<hn::Full128<float>> sum_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The sums of the lanes of each.
template <int64_t columns>
HWY_INLINE void store_sums(const Real (&all)[columns], float* sums) {
  const RealTag d;
  if constexpr (columns == 4) {
    const hn::Repartition<double, RealTag> d2;
    const auto ab = hn::Add(hn::InterleaveLower(d, all[0], all[1]), hn::InterleaveUpper(d, all[0], all[1]));
    const auto cd = hn::Add(hn::InterleaveLower(d, all[2], all[3]), hn::InterleaveUpper(d, all[2], all[3]));
    const auto ab2 = hn::BitCast(d2, ab), cd2 = hn::BitCast(d2, cd);
    const Real abcd = hn::Add(hn::BitCast(d, hn::InterleaveLower(d2, ab2, cd2)),
                              hn::BitCast(d, hn::InterleaveUpper(d2, ab2, cd2)));
    hn::StoreU(sum_blocks(d, abcd), hn::Full128<float>(), sums);
  } else {
    for (int64_t c = 0; c < columns; ++c) sums[c] = hn::GetLane(hn::SumOfLanes(d, all[c]));
  }
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
void float_tile(const NBitsMatrix& m, const BlockNumbers<Field>& numbers, const std::byte* arranged,
                int64_t row_bytes, int64_t column, float* sums) {
  const RealTag d;
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
    for (int64_t c = 0; c < columns; ++c)
      v[c] = flip<Field>(load_weights<Field>(m, numbers, column + c, chunk));
    HWY_UNROLL(4)
    for (int64_t r = 0; r < rows; ++r)
      a[r] = reinterpret_cast<const float*>(arranged + r * row_bytes + chunk * FloatRow<Field>::kBytes);
    add_weights<Field, 0, columns, rows>(v, a, sum);
    HWY_UNROLL(4)
    for (int64_t c = 0; c < columns; ++c) {
      const Real scale = numbers.scales(column + c, chunk);
      HWY_UNROLL(4)
      for (int64_t r = 0; r < rows; ++r) all[r][c] = hn::MulAdd(scale, sum[r][c], all[r][c]);
    }
  }
  if (!numbers.is_symmetric())
    subtract_zeros<Field, columns, rows>(numbers, arranged + chunks * FloatRow<Field>::kBytes, row_bytes,
                                         column, Field::kMiddle, all);
  for (int64_t r = 0; r < rows; ++r) store_sums<columns>(all[r], sums + r * columns);
}

// Rows in groups, columns as many at a time as registers hold.
template <typename Form, typename Field, int64_t columns, int64_t rows>
HWY_INLINE void store_tile(const NBitsMatrix& m, const BlockNumbers<Field>& numbers, const NBitsRows& p,
                           int64_t row_bytes, int64_t row, int64_t column) {
  float sums[rows * columns];
  const auto* a = static_cast<const std::byte*>(p.arranged) + row * row_bytes;
  Form::template tile<Field, columns, rows>(m, numbers, a, row_bytes, column, sums);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      p.y[(row + r) * p.y_stride + column + c] =
          sums[r * columns + c] + (p.bias != nullptr ? p.bias[column + c] : 0);
  }
}

template <typename Form, typename Field, int64_t columns>
void all_rows(const NBitsMatrix& m, const BlockNumbers<Field>& numbers, const NBitsRows& p, int64_t row_bytes,
              int64_t column) {
  constexpr int64_t kRows = 4, kTogether = columns > 2 ? 2 : columns;
  int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) {
    for (int64_t c = 0; c < columns; c += kTogether)
      store_tile<Form, Field, kTogether, kRows>(m, numbers, p, row_bytes, row, column + c);
  }
  for (; row + 2 <= p.rows; row += 2) {
    for (int64_t c = 0; c < columns; c += kTogether)
      store_tile<Form, Field, kTogether, 2>(m, numbers, p, row_bytes, row, column + c);
  }
  for (; row < p.rows; ++row) store_tile<Form, Field, columns, 1>(m, numbers, p, row_bytes, row, column);
}

struct FloatForm {
  static constexpr bool kHasFreeTiles = false;
  template <typename Field>
  using Row = FloatRow<Field>;
  template <typename Field, int64_t columns, int64_t rows>
  static HWY_INLINE void tile(const NBitsMatrix& m, const BlockNumbers<Field>& numbers, const std::byte* a,
                              int64_t row_bytes, int64_t column, float* sums) {
    float_tile<Field, columns, rows>(m, numbers, a, row_bytes, column, sums);
  }
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
