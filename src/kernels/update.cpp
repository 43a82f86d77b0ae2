#include "kernels/update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE VecOf<T> number(double value) {
  return hn::Set(TagOf<T>(), static_cast<T>(value));
}

// Calls step(first element, number of elements) for one vector after the other.
template <class T, class F>
HWY_INLINE void for_lanes(int64_t count, F step) {
  for (int64_t i = 0; i < count; i += kLanesOf<T>) step(i, count - i < kLanesOf<T> ? count - i : kLanesOf<T>);
}

template <class T>
HWY_INLINE VecOf<T> changed(const GradientChange& how, VecOf<T> gradient, VecOf<T> weight) {
  VecOf<T> g = hn::Mul(gradient, number<T>(how.scale));
  if (how.clip > 0) g = hn::Min(hn::Max(g, number<T>(-how.clip)), number<T>(how.clip));
  return how.decay != 0 ? hn::MulAdd(weight, number<T>(how.decay), g) : g;
}

// What is kept of the old and taken of the new.
template <class T>
HWY_INLINE VecOf<T> mixed(VecOf<T> old, double kept, VecOf<T> added, double taken) {
  return hn::MulAdd(added, number<T>(taken), hn::Mul(old, number<T>(kept)));
}

template <class T>
void sgd_of(const SgdUpdate& how, const UpdateRange<T>& r) {
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    const VecOf<T> w = load_lanes(r.weight + i, n);
    VecOf<T> g = changed<T>(how.change, load_lanes(r.gradient + i, n), w);
    if (how.momentum != 0) {
      T* buffer = r.state[0] + i;
      const VecOf<T> b = how.first ? g : mixed<T>(load_lanes(buffer, n), how.momentum, g, 1 - how.dampening);
      store_lanes<T>(b, buffer, n);
      g = how.nesterov ? hn::MulAdd(b, number<T>(how.momentum), g) : b;
    }
    store_lanes<T>(hn::NegMulAdd(g, number<T>(how.rate), w), r.weight + i, n);
  });
}

template <class T>
void adam_of(const AdamUpdate& how, const UpdateRange<T>& r) {
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    VecOf<T> w = load_lanes(r.weight + i, n);
    const VecOf<T> g = changed<T>(how.change, load_lanes(r.gradient + i, n), w);
    const VecOf<T> m = mixed<T>(load_lanes(r.state[0] + i, n), how.beta1, g, 1 - how.beta1);
    const VecOf<T> v = mixed<T>(load_lanes(r.state[1] + i, n), how.beta2, hn::Mul(g, g), 1 - how.beta2);
    store_lanes<T>(m, r.state[0] + i, n);
    store_lanes<T>(v, r.state[1] + i, n);
    if (how.keep != 1) w = hn::Mul(w, number<T>(how.keep));
    const VecOf<T> root = hn::MulAdd(hn::Sqrt(v), number<T>(how.root_scale), number<T>(how.epsilon));
    w = hn::NegMulAdd(hn::Div(m, root), number<T>(how.rate), w);
    if (how.keep_after != 1) w = hn::Mul(w, number<T>(how.keep_after));
    store_lanes<T>(w, r.weight + i, n);
  });
}

template <class T>
void adagrad_of(const AdagradUpdate& how, const UpdateRange<T>& r) {
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    const VecOf<T> w = load_lanes(r.weight + i, n);
    const VecOf<T> g = changed<T>(how.change, load_lanes(r.gradient + i, n), w);
    const VecOf<T> sum = hn::MulAdd(g, g, load_lanes(r.state[0] + i, n));
    store_lanes<T>(sum, r.state[0] + i, n);
    const VecOf<T> step = hn::Div(g, hn::Add(hn::Sqrt(sum), number<T>(how.epsilon)));
    store_lanes<T>(hn::NegMulAdd(step, number<T>(how.rate), w), r.weight + i, n);
  });
}

template <class T>
void rms_prop_of(const RmsPropUpdate& how, const UpdateRange<T>& r) {
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    const VecOf<T> w = load_lanes(r.weight + i, n);
    const VecOf<T> g = changed<T>(how.change, load_lanes(r.gradient + i, n), w);
    VecOf<T> square = mixed<T>(load_lanes(r.state[0] + i, n), how.alpha, hn::Mul(g, g), 1 - how.alpha);
    store_lanes<T>(square, r.state[0] + i, n);
    if (how.centered) {
      const VecOf<T> mean = mixed<T>(load_lanes(r.state[1] + i, n), how.alpha, g, 1 - how.alpha);
      store_lanes<T>(mean, r.state[1] + i, n);
      square = hn::NegMulAdd(mean, mean, square);
    }
    VecOf<T> step = hn::Div(g, hn::Add(hn::Sqrt(square), number<T>(how.epsilon)));
    if (how.momentum != 0) {
      step = hn::MulAdd(load_lanes(r.state[2] + i, n), number<T>(how.momentum), step);
      store_lanes<T>(step, r.state[2] + i, n);
    }
    store_lanes<T>(hn::NegMulAdd(step, number<T>(how.rate), w), r.weight + i, n);
  });
}

template <class T>
HWY_INLINE VecOf<T> lamb_direction(const LambUpdate& how, VecOf<T> m, VecOf<T> v, VecOf<T> w) {
  const VecOf<T> root = hn::Add(hn::Sqrt(hn::Mul(v, number<T>(how.square_scale))), number<T>(how.epsilon));
  const VecOf<T> step = hn::Div(hn::Mul(m, number<T>(how.mean_scale)), root);
  return hn::MulAdd(w, number<T>(how.decay), step);
}

// Lanes behind the end are zeros: they add nothing.
template <class T>
HWY_INLINE double squares(VecOf<T> v, int64_t n) {
  HWY_ALIGN T lanes[static_cast<size_t>(kLanesOf<T>)];
  hn::Store(v, TagOf<T>(), lanes);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(lanes[i]) * static_cast<double>(lanes[i]);
  return sum;
}

template <class T>
LambNorms lamb_moments_of(const LambUpdate& how, const UpdateRange<T>& r) {
  LambNorms norms;
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    const VecOf<T> w = load_lanes(r.weight + i, n);
    const VecOf<T> g = changed<T>(how.change, load_lanes(r.gradient + i, n), w);
    const VecOf<T> m = mixed<T>(load_lanes(r.state[0] + i, n), how.beta1, g, 1 - how.beta1);
    const VecOf<T> v = mixed<T>(load_lanes(r.state[1] + i, n), how.beta2, hn::Mul(g, g), 1 - how.beta2);
    store_lanes<T>(m, r.state[0] + i, n);
    store_lanes<T>(v, r.state[1] + i, n);
    norms.weight += squares<T>(w, n);
    norms.direction += squares<T>(lamb_direction<T>(how, m, v, w), n);
  });
  return norms;
}

template <class T>
void lamb_weights_of(const LambUpdate& how, const UpdateRange<T>& r) {
  for_lanes<T>(r.count, [&](int64_t i, int64_t n) HWY_ATTR {
    const VecOf<T> w = load_lanes(r.weight + i, n);
    const VecOf<T> step =
        lamb_direction<T>(how, load_lanes(r.state[0] + i, n), load_lanes(r.state[1] + i, n), w);
    store_lanes<T>(hn::NegMulAdd(step, number<T>(how.rate), w), r.weight + i, n);
  });
}

template <class T>
void add_of(int64_t count, const T* x, T* sum) {
  for_lanes<T>(count, [&](int64_t i, int64_t n) HWY_ATTR {
    store_lanes<T>(hn::Add(load_lanes(sum + i, n), load_lanes(x + i, n)), sum + i, n);
  });
}

template <class T>
double squares_of(int64_t count, const T* x) {
  double sum = 0;
  for_lanes<T>(count, [&](int64_t i, int64_t n) HWY_ATTR { sum += squares<T>(load_lanes(x + i, n), n); });
  return sum;
}

}  // namespace

// One function per type, which is what can be exported.
#define PLIMSOLL_UPDATES(T, name)                                               \
  void sgd_##name(const SgdUpdate& how, const UpdateRange<T>& r) {              \
    sgd_of(how, r);                                                             \
  }                                                                             \
  void adam_##name(const AdamUpdate& how, const UpdateRange<T>& r) {            \
    adam_of(how, r);                                                            \
  }                                                                             \
  void adagrad_##name(const AdagradUpdate& how, const UpdateRange<T>& r) {      \
    adagrad_of(how, r);                                                         \
  }                                                                             \
  void rms_prop_##name(const RmsPropUpdate& how, const UpdateRange<T>& r) {     \
    rms_prop_of(how, r);                                                        \
  }                                                                             \
  LambNorms lamb_moments_##name(const LambUpdate& h, const UpdateRange<T>& r) { \
    return lamb_moments_of(h, r);                                               \
  }                                                                             \
  void lamb_weights_##name(const LambUpdate& h, const UpdateRange<T>& r) {      \
    lamb_weights_of(h, r);                                                      \
  }                                                                             \
  void add_##name(int64_t count, const T* x, T* sum) {                          \
    add_of(count, x, sum);                                                      \
  }                                                                             \
  double squares_##name(int64_t count, const T* x) {                            \
    return squares_of(count, x);                                                \
  }
PLIMSOLL_UPDATES(float, f32)
PLIMSOLL_UPDATES(double, f64)
#undef PLIMSOLL_UPDATES

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

#define PLIMSOLL_UPDATES(T, name)                                                   \
  HWY_EXPORT(sgd_##name);                                                           \
  HWY_EXPORT(adam_##name);                                                          \
  HWY_EXPORT(adagrad_##name);                                                       \
  HWY_EXPORT(rms_prop_##name);                                                      \
  HWY_EXPORT(lamb_moments_##name);                                                  \
  HWY_EXPORT(lamb_weights_##name);                                                  \
  HWY_EXPORT(add_##name);                                                           \
  HWY_EXPORT(squares_##name);                                                       \
  template <>                                                                       \
  void update<T>(const SgdUpdate& how, const UpdateRange<T>& range) {               \
    HWY_DYNAMIC_DISPATCH(sgd_##name)(how, range);                                   \
  }                                                                                 \
  template <>                                                                       \
  void update<T>(const AdamUpdate& how, const UpdateRange<T>& range) {              \
    HWY_DYNAMIC_DISPATCH(adam_##name)(how, range);                                  \
  }                                                                                 \
  template <>                                                                       \
  void update<T>(const AdagradUpdate& how, const UpdateRange<T>& range) {           \
    HWY_DYNAMIC_DISPATCH(adagrad_##name)(how, range);                               \
  }                                                                                 \
  template <>                                                                       \
  void update<T>(const RmsPropUpdate& how, const UpdateRange<T>& range) {           \
    HWY_DYNAMIC_DISPATCH(rms_prop_##name)(how, range);                              \
  }                                                                                 \
  template <>                                                                       \
  LambNorms update_moments<T>(const LambUpdate& how, const UpdateRange<T>& range) { \
    return HWY_DYNAMIC_DISPATCH(lamb_moments_##name)(how, range);                   \
  }                                                                                 \
  template <>                                                                       \
  void update_weights<T>(const LambUpdate& how, const UpdateRange<T>& range) {      \
    HWY_DYNAMIC_DISPATCH(lamb_weights_##name)(how, range);                          \
  }                                                                                 \
  template <>                                                                       \
  void add_to<T>(int64_t count, const T* x, T* sum) {                               \
    HWY_DYNAMIC_DISPATCH(add_##name)(count, x, sum);                                \
  }                                                                                 \
  template <>                                                                       \
  double sum_of_squares<T>(int64_t count, const T* x) {                             \
    return HWY_DYNAMIC_DISPATCH(squares_##name)(count, x);                          \
  }
PLIMSOLL_UPDATES(float, f32)
PLIMSOLL_UPDATES(double, f64)
#undef PLIMSOLL_UPDATES

}  // namespace plimsoll::kernels
#endif
