// Float vectors and their incomplete ends, once per target. Internal linkage: include freely.
#if defined(PLIMSOLL_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_LANES_INL_H_
#undef PLIMSOLL_KERNELS_LANES_INL_H_
#else
#define PLIMSOLL_KERNELS_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;

namespace {

constexpr int64_t kFloatLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// The first `count` lanes, the others zero; never touches memory behind them. SSE4 has no masked
// accesses, so it goes through the stack.
HWY_INLINE HWY_MAYBE_UNUSED FloatVec load_lanes(const float* p, int64_t count) {
  const FloatTag d;
  if (count >= kFloatLanes) return hn::LoadU(d, p);
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN float lanes[kFloatLanes] = {};
  std::memcpy(lanes, p, static_cast<size_t>(count) * sizeof(float));
  return hn::Load(d, lanes);
#endif
}

HWY_INLINE HWY_MAYBE_UNUSED void store_lanes(FloatVec v, float* p, int64_t count) {
  const FloatTag d;
  if (count >= kFloatLanes) return hn::StoreU(v, d, p);
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN float lanes[kFloatLanes];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, static_cast<size_t>(count) * sizeof(float));
#endif
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
