// Which form of int_gemm multiplies what, once per target.
#if defined(PLIMSOLL_KERNELS_INT_GEMM_FORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_INT_GEMM_FORMS_INL_H_
#undef PLIMSOLL_KERNELS_INT_GEMM_FORMS_INL_H_
#else
#define PLIMSOLL_KERNELS_INT_GEMM_FORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "kernels/int_gemm_centred-inl.h"
#include "kernels/int_gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// Calls f with the form that weights are packed for.
template <typename F>
auto with_form(F&& f) {
#ifdef PLIMSOLL_VNNI
  if (has_vnni()) return f(QuadTiles());
#endif
#if HWY_TARGET == HWY_AVX2
  return f(CentredTiles());
#else
  return f(PairTiles());
#endif
}

// Calls f with the form that such a product is multiplied in.
template <typename F>
void with_form_for([[maybe_unused]] int64_t m, [[maybe_unused]] int64_t k, F&& f) {
#if HWY_TARGET == HWY_AVX3
  if (AmxTiles::suits(m, k)) return f(AmxTiles());
  with_form(f);
#else
  with_form([&](auto form) {
    if constexpr (std::is_same_v<decltype(form), PairTiles>) {
      if (m >= 3 * PairTiles::kRows) return f(WidePairTiles());
    }
    f(form);
  });
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
