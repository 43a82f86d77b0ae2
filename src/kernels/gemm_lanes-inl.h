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

inline constexpr int64_t kLanes = kFloatLanes;

// The first `count` lanes in memory. Masked accesses never touch what lies behind; SSE4 has none, so it goes
// through the stack.
struct Lanes {
  explicit Lanes(int64_t n)
      : count(std::min(n, kLanes)), mask(hn::FirstN(FloatTag(), static_cast<size_t>(n))) {}

  HWY_INLINE FloatVec load(const float* p) const {
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(mask, FloatTag(), p);
#else
    HWY_ALIGN float lanes[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return hn::Load(FloatTag(), lanes);
#endif
  }

  HWY_INLINE void store(FloatVec v, float* p) const {
#if HWY_TARGET <= HWY_AVX2
    hn::BlendedStore(v, mask, FloatTag(), p);
#else
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, FloatTag(), lanes);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
#endif
  }

  int64_t count;
  hn::Mask<FloatTag> mask;
};

struct AllLanes {
  HWY_INLINE FloatVec load(const float* p) const { return hn::LoadU(FloatTag(), p); }
  HWY_INLINE void store(FloatVec v, float* p) const { hn::StoreU(v, FloatTag(), p); }
};

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
