// Vectors of at most 64 bytes and their incomplete ends, once per target. Internal linkage: include freely.
#if defined(PLIMSOLL_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_LANES_INL_H_
#undef PLIMSOLL_KERNELS_LANES_INL_H_
#else
#define PLIMSOLL_KERNELS_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What elements of type T are computed in.
template <class T>
using TagOf = hn::CappedTag<LaneOf<T>, 64 / sizeof(LaneOf<T>)>;
template <class T>
using VecOf = hn::Vec<TagOf<T>>;
using FloatTag = TagOf<float>;
using FloatVec = VecOf<float>;

namespace {

template <class T>
constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(TagOf<T>()));
constexpr int64_t kFloatLanes = kLanesOf<float>;

// The first `count` lanes, the others zero; never touches memory behind them.
template <class T>
HWY_INLINE VecOf<T> load_lanes(const T* p, int64_t count) {
  if (count >= kLanesOf<T>) return load_all(TagOf<T>(), p);
  return load_first(TagOf<T>(), p, static_cast<size_t>(count));
}

template <class T>
HWY_INLINE void store_lanes(VecOf<T> v, T* p, int64_t count) {
  if (count >= kLanesOf<T>) return store_all(TagOf<T>(), v, p);
  store_first(TagOf<T>(), v, p, static_cast<size_t>(count));
}

// Bytes that a step of convolution's tile fetches of weights that are needed soon: a panel of floats, two
// vectors of 16 wide, has been fetched after four tiles.
constexpr int64_t kFetched = 32;

// Into the second-level cache: panels are larger than the first.
HWY_INLINE void fetch_soon(const void* p) {
  __builtin_prefetch(p, 0, 2);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
