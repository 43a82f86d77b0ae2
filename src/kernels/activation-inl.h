// Activations on Highway vectors, once per target: include inside a foreach_target translation unit.
#if defined(PLIMSOLL_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#undef PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#else
#define PLIMSOLL_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/activation.h"
#include "kernels/lanes-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body with a function of one vector, so that the choice is made once and not per vector.
template <class D, class Body>
HWY_INLINE void with_activation(D d, Activation f, Body&& body) {
  using V = hn::Vec<D>;
  const auto linear = [=](V x) HWY_ATTR { return hn::MulAdd(hn::Set(d, f.a), x, hn::Set(d, f.b)); };
  switch (f.kind) {
    case ActivationKind::kNone:
      return body([=](V x) HWY_ATTR { return x; });
    case ActivationKind::kRelu:
      return body([=](V x) HWY_ATTR { return v_max(hn::Zero(d), x); });
    case ActivationKind::kLeakyRelu:
      return body([=](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, f.a)), x);
      });
    case ActivationKind::kClip:
      return body([=](V x) HWY_ATTR { return v_clamp(d, x, f.a, f.b); });
    case ActivationKind::kSigmoid:
      return body([=](V x) HWY_ATTR { return v_sigmoid(d, x); });
    case ActivationKind::kSilu:
      return body([=](V x) HWY_ATTR { return hn::Mul(x, v_sigmoid(d, x)); });
    case ActivationKind::kTanh:
      return body([=](V x) HWY_ATTR { return v_tanh(d, x); });
    case ActivationKind::kGelu:
      return body([=](V x) HWY_ATTR { return v_gelu(d, x); });
    case ActivationKind::kHardSigmoid:
      return body([=](V x) HWY_ATTR { return v_clamp(d, linear(x), 0.0f, 1.0f); });
    case ActivationKind::kHardSwish:
      return body([=](V x) HWY_ATTR {
        const V gate = hn::MulAdd(x, hn::Set(d, hn::TFromD<D>{1} / 6), hn::Set(d, 0.5f));
        return hn::Mul(x, v_clamp(d, gate, 0.0f, 1.0f));
      });
  }
}

// In place: `rows` rows of `cols` elements. Two vectors at a time, so that neither waits for the other.
template <class T, class Function>
HWY_INLINE void activate_rows(T* y, int64_t rows, int64_t stride, int64_t cols, const Function& activation) {
  constexpr int64_t kLanes = kLanesOf<T>;
  for (int64_t row = 0; row < rows; ++row, y += stride) {
    int64_t col = 0;
    for (; col + 2 * kLanes <= cols; col += 2 * kLanes) {
      const VecOf<T> first = activation(load_all(TagOf<T>(), y + col));
      const VecOf<T> second = activation(load_all(TagOf<T>(), y + col + kLanes));
      store_all(TagOf<T>(), first, y + col);
      store_all(TagOf<T>(), second, y + col + kLanes);
    }
    for (; col < cols; col += kLanes)
      store_lanes(activation(load_lanes(y + col, cols - col)), y + col, cols - col);
  }
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
