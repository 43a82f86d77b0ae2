// Whole and partial vectors behind one face, once per target: a tile chooses once, not per access.
#if defined(PLIMSOLL_KERNELS_GEMM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_LANES_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_LANES_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The first `count` lanes in memory, kept as W or as a 16-bit type.
template <class W>
struct Lanes {
  using D = TagOf<W>;
  using V = VecOf<W>;

  explicit Lanes(int64_t n)
      : count(static_cast<size_t>(std::min(n, kLanesOf<W>))), mask(hn::FirstN(D(), static_cast<size_t>(n))) {}

  template <class T>
  HWY_INLINE V load(const T* p) const {
#if HWY_TARGET <= HWY_AVX2
    if constexpr (std::is_same_v<T, W>) return hn::MaskedLoad(mask, D(), p);
#endif
    return load_first(D(), p, count);
  }

  template <class T>
  HWY_INLINE void store(V v, T* p) const {
#if HWY_TARGET <= HWY_AVX2
    if constexpr (std::is_same_v<T, W>) return hn::BlendedStore(v, mask, D(), p);
#endif
    store_first(D(), v, p, count);
  }

  size_t count;
  hn::Mask<D> mask;
};

template <class W>
struct AllLanes {
  template <class T>
  HWY_INLINE VecOf<W> load(const T* p) const {
    return load_all(TagOf<W>(), p);
  }
  template <class T>
  HWY_INLINE void store(VecOf<W> v, T* p) const {
    store_all(TagOf<W>(), v, p);
  }
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
