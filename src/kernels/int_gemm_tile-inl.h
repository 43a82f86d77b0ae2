// The inner loop of int_gemm, once per target: a few rows of A times one panel of B, sums in registers.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using IntTag = hn::ScalableTag<int32_t>;
using IntVec = hn::Vec<IntTag>;
inline constexpr int64_t kIntLanes = hn::MaxLanes(IntTag());
inline constexpr int64_t kIntPanel = 2 * kIntLanes;  // columns

// `first`: what the sums of the columns start with; sums: rows of kIntPanel. The stride of A counts elements.
using IntTile = void (*)(const void* a, int64_t a_stride, const int8_t* b, int64_t groups,
                         const int32_t* first, int32_t* sums);

// Two products of 16-bit numbers at a time: 255 * 128 * 2 is far from 32 bits.
struct Pairs {
  static constexpr int64_t kGroup = 2, kRows = 6, kBlockRows = 48;
  using Left = int16_t;

  // The first `vectors` of a panel's two.
  template <int64_t rows, int64_t vectors>
  static void tile(const void* left, int64_t a_stride, const int8_t* b, int64_t groups, const int32_t* first,
                   int32_t* sums) {
    const IntTag d;
    const hn::Repartition<int16_t, IntTag> d16;
    const hn::Rebind<int8_t, decltype(d16)> d8;
    const auto* a = static_cast<const Left*>(left);
    IntVec sum0[rows], sum1[rows];
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      sum0[r] = hn::Load(d, first);
      if constexpr (vectors > 1) sum1[r] = hn::Load(d, first + kIntLanes);
    }
    for (int64_t g = 0; g < groups; ++g, b += kGroup * kIntPanel) {
      const auto b0 = hn::PromoteTo(d16, hn::LoadU(d8, b));
      const auto b1 = hn::PromoteTo(d16, hn::LoadU(d8, b + kGroup * kIntLanes));
      HWY_UNROLL(8)
      for (int64_t r = 0; r < rows; ++r) {
        int32_t pair;
        std::memcpy(&pair, a + r * a_stride + g * kGroup, sizeof pair);
        const auto value = hn::BitCast(d16, hn::Set(d, pair));
        IntVec other0 = hn::Zero(d), other1 = hn::Zero(d);
        sum0[r] = hn::ReorderWidenMulAccumulate(d, value, b0, sum0[r], other0);
        sum0[r] = hn::RearrangeToOddPlusEven(sum0[r], other0);
        if constexpr (vectors > 1) {
          sum1[r] = hn::ReorderWidenMulAccumulate(d, value, b1, sum1[r], other1);
          sum1[r] = hn::RearrangeToOddPlusEven(sum1[r], other1);
        }
      }
    }
    HWY_UNROLL(8)
    for (int64_t r = 0; r < rows; ++r) {
      hn::Store(sum0[r], d, sums + r * kIntPanel);
      if constexpr (vectors > 1) hn::Store(sum1[r], d, sums + r * kIntPanel + kIntLanes);
    }
  }
};

#if HWY_TARGET == HWY_AVX3
// Four products of unsigned and signed bytes at a time, where the machine has them: AVX-512 VNNI is no target
// of Highway's, so that this one function names it.
struct Quads {
  static constexpr int64_t kGroup = 4, kRows = 14, kBlockRows = 84;
  using Left = uint8_t;

  template <int64_t rows, int64_t vectors>
  [[gnu::target("avx512vnni")]] static void tile(const void* left, int64_t a_stride, const int8_t* b,
                                                 int64_t groups, const int32_t* first, int32_t* sums) {
    const auto* a = static_cast<const Left*>(left);
    __m512i sum0[rows], sum1[rows];
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
      sum0[r] = _mm512_load_si512(first);
      if constexpr (vectors > 1) sum1[r] = _mm512_load_si512(first + kIntLanes);
    }
    for (int64_t g = 0; g < groups; ++g, b += kGroup * kIntPanel, a += kGroup) {
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + kGroup * kIntLanes);
#pragma GCC unroll 16
      for (int64_t r = 0; r < rows; ++r) {
        int32_t quad;
        std::memcpy(&quad, a + r * a_stride, sizeof quad);
        const __m512i value = _mm512_set1_epi32(quad);
        sum0[r] = _mm512_dpbusd_epi32(sum0[r], value, b0);
        if constexpr (vectors > 1) sum1[r] = _mm512_dpbusd_epi32(sum1[r], value, b1);
      }
    }
#pragma GCC unroll 16
    for (int64_t r = 0; r < rows; ++r) {
      _mm512_store_si512(sums + r * kIntPanel, sum0[r]);
      if constexpr (vectors > 1) _mm512_store_si512(sums + r * kIntPanel + kIntLanes, sum1[r]);
    }
  }
};
#endif

template <typename Form, int64_t vectors, size_t... i>
constexpr std::array<IntTile, sizeof...(i)> make_int_tiles(std::index_sequence<i...>) {
  return {Form::template tile<static_cast<int64_t>(i) + 1, vectors>...};
}
// By the number of rows, less one.
template <typename Form, int64_t vectors>
inline constexpr auto kIntTiles = make_int_tiles<Form, vectors>(std::make_index_sequence<Form::kRows>());

// Calls f with the form that this machine multiplies in.
template <typename F>
auto with_form(F&& f) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512vnni")) return f(Quads());
#endif
  return f(Pairs());
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
