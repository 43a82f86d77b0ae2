// Rows of A as the forms of int_gemm have them, once per target.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_ROWS_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_ROWS_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/int_gemm.h"
#include "kernels/int_gemm_forms-inl.h"
#include "kernels/int_gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// One thread's share of scratch.
template <typename Form>
struct Block {
  typename Form::Left* rows;  // Form::kBlockRows of `stride` elements
  int64_t stride;
  uint32_t* sums;
  uint8_t* row;                 // as read, k bytes
  typename Form::Right* panel;  // of B, where the form has it wider than it is packed
  Misfits misfits;              // of forms that have a centre
};

template <typename Form>
inline constexpr bool kWidensPanels = sizeof(typename Form::Right) > 1;

constexpr IntGemmScratch kScratch = {HWY_TARGET == HWY_AVX2 ? 165 : 98, 13312};

template <typename Form>
Block<Form> block_in(std::byte* scratch, int64_t k) {
  using Left = typename Form::Left;
  constexpr int64_t kBlockRows = Form::kBlockRows;
  // kBlockRows * stride elements, kBlockRows sums, a row and a wide panel fit kScratch.
  constexpr int64_t kWide = kWidensPanels<Form> ? kIntPanel * int64_t{sizeof(typename Form::Right)} : 0;
  static_assert(kBlockRows * sizeof(Left) + 1 + kWide <= kScratch.per_k);
  static_assert(kBlockRows * (Form::kGroup + 62 + 64 / sizeof(Left)) * sizeof(Left) + kBlockRows * 4 +
                    kWide * Form::kGroup + 128 <=
                kScratch.base);
  static_assert(kBlockRows % Form::kRows == 0);
  Block<Form> block;
  block.stride = (k + Form::kGroup - 1 + 63) / 64 * 64;
  // Rows that lie a power of two apart would share their place in the cache.
  if (block.stride * int64_t{sizeof(Left)} % 512 == 0) block.stride += 64 / int64_t{sizeof(Left)};
  block.rows = reinterpret_cast<Left*>(scratch);
  block.sums = reinterpret_cast<uint32_t*>(block.rows + kBlockRows * block.stride);
  block.row = reinterpret_cast<uint8_t*>(block.sums + kBlockRows);
  const auto behind = reinterpret_cast<uintptr_t>(block.row + k);
  block.panel = reinterpret_cast<typename Form::Right*>((behind + 63) / 64 * 64);
  if constexpr (Form::kIsCentred) {
    block.misfits.starts = reinterpret_cast<int32_t*>(
        block.panel + kIntPanel * Form::kGroup * Form::packed_groups(group_count<Form>(k)));
    block.misfits.list = reinterpret_cast<Misfit*>(block.misfits.starts + kBlockRows + 1);
  }
  return block;
}

// Elements become as wide as the form has them, and `flip` makes signed ones unsigned, plus 128. What is
// behind them, up to a whole group, is zero. May be done in place.
HWY_INLINE void widen_row(const uint8_t* from, int64_t k, uint8_t flip, int64_t whole, uint8_t* to) {
  const auto by = [&](auto d, int64_t i) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto bits = hn::Set(d, flip);
    for (; i + lanes <= k; i += lanes) hn::StoreU(hn::Xor(hn::LoadU(d, from + i), bits), d, to + i);
    return i;
  };
  int64_t i = flip == 0 && from == to ? k : by(hn::FixedTag<uint8_t, 8>(), by(hn::ScalableTag<uint8_t>(), 0));
  for (; i < k; ++i) to[i] = static_cast<uint8_t>(from[i] ^ flip);
  for (; i < whole; ++i) to[i] = 0;
}

HWY_INLINE void widen_row(const uint8_t* from, int64_t k, uint8_t flip, int64_t whole, int16_t* to) {
  const auto by = [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> d8;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto bits = hn::Set(d8, flip);
    for (; i + lanes <= k; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::Xor(hn::LoadU(d8, from + i), bits)), d, to + i);
    return i;
  };
  int64_t i = by(hn::FixedTag<int16_t, 8>(), by(hn::ScalableTag<int16_t>(), 0));
  for (; i < k; ++i) to[i] = static_cast<int16_t>(from[i] ^ flip);
  for (; i < whole; ++i) to[i] = 0;
}

HWY_INLINE uint32_t sum_of_row(const int16_t* row, int64_t k, bool) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += static_cast<uint32_t>(row[i]);
  return sum;
}

HWY_INLINE uint32_t sum_of_row(const uint8_t* row, int64_t k, bool is_signed) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t flip = is_signed ? 0x80 : 0;  // taken plus 128
  auto all = hn::Zero(d64);
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes)
    all = hn::Add(all, hn::SumsOf8(hn::Xor(hn::LoadU(d, row + i), hn::Set(d, flip))));
  auto sum = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64, all)));
  for (; i < k; ++i) sum += static_cast<uint8_t>(row[i] ^ flip);
  return is_signed ? sum - 128 * static_cast<uint32_t>(k) : sum;
}

// Writes one row of A to `row`, if it does not lie as one; where it is.
HWY_INLINE const uint8_t* read_row(const IntGemmLeft& a, int64_t k, int64_t index, uint8_t* row) {
  const uint8_t* from = static_cast<const uint8_t*>(a.data) + index * a.row_stride;
  if (a.read_rows != nullptr) {
    a.read_rows(a.context, index, 1, row, k);
  } else if (a.col_stride != 1) {
    for (int64_t i = 0; i < k; ++i) row[i] = from[i * a.col_stride];
  } else {
    return from;
  }
  return row;
}

template <typename Form>
void load_rows(const IntGemmLeft& a, int64_t k, int64_t row0, int64_t rows, bool with_sums,
               const Block<Form>& block) {
  constexpr bool kAreBytes = sizeof(typename Form::Left) == 1;
  const uint8_t flip = a.is_signed && !Form::kTakesSigned ? 0x80 : 0;
  const bool are_read = kAreBytes && a.read_rows != nullptr;
  if (are_read) a.read_rows(a.context, row0, rows, reinterpret_cast<uint8_t*>(block.rows), block.stride);
  // B is zero behind k.
  if (are_read && flip == 0 && !with_sums) return;
  for (int64_t r = 0; r < rows; ++r) {
    typename Form::Left* to = block.rows + r * block.stride;
    uint8_t* own = kAreBytes ? reinterpret_cast<uint8_t*>(to) : block.row;
    const uint8_t* from = are_read ? own : read_row(a, k, row0 + r, own);
    widen_row(from, k, flip, group_count<Form>(k) * Form::kGroup, to);
    if (with_sums) block.sums[r] = sum_of_row(to, k, a.is_signed && Form::kTakesSigned);
  }
}

#if HWY_TARGET == HWY_AVX2
// False if so much does not fit that the 16-bit numbers of WidePairTiles take less time.
template <typename Form>
bool load_centred_rows(const IntGemmLeft& a, int64_t k, int64_t row0, int64_t rows, int32_t centre,
                       const int8_t* sizes, const Block<Form>& block) {
  constexpr int64_t kFewRows = 12, kMostPercent = 16, kRows = Form::kBlockRows;
  // What rows may leave in the list before they are given up fits kScratch.
  constexpr int64_t kMisfits = std::max(kFewRows, kRows * kMostPercent / 100 + 2) * int64_t{sizeof(Misfit)};
  static_assert(kRows + 1 + kIntPanel + kMisfits / 4 <= kScratch.per_k);
  static_assert(kRows * (63 + 67) + 4 * (2 * kRows + 1) + 64 + 8 * kIntPanel + 2 * kMisfits <= kScratch.base);
  const RowCentring<Form::kIsNatural> centring(a.is_signed ? 0x80 : 0, centre, sizes);
  const int64_t groups = Form::packed_groups(group_count<Form>(k));
  const int64_t most = rows < kFewRows ? rows * groups : rows * groups * kMostPercent / 100;
  Misfit* next = block.misfits.list;
  for (int64_t r = 0; r < rows; ++r) {
    block.misfits.starts[r] = static_cast<int32_t>(next - block.misfits.list);
    uint8_t* to = block.rows + r * block.stride;
    const uint8_t* from = read_row(a, k, row0 + r, to);
    next = centring.row(from, k, to, next, block.sums[r]);
    if (next - block.misfits.list > most) return false;
  }
  block.misfits.starts[rows] = static_cast<int32_t>(next - block.misfits.list);
  return true;
}
#endif

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
