#include "kernels/channel_sums.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/channel_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kBlockBytes = 16 << 10;  // of x, read twice: both stay near

// to[c] = sum over rows of f(row, c, lanes), four rows at a time.
template <class T, class F>
HWY_INLINE void sum_rows(int64_t rows, int64_t cols, LaneOf<T>* to, F f) {
  const TagOf<T> d;
  std::fill_n(to, cols, LaneOf<T>{0});
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for (int64_t c = 0; c < cols; c += kLanesOf<T>) {
      const int64_t lanes = cols - c;
      const VecOf<T> low = hn::Add(f(row, c, lanes), f(row + 1, c, lanes));
      const VecOf<T> high = hn::Add(f(row + 2, c, lanes), f(row + 3, c, lanes));
      store_lanes(hn::Add(load_lanes(to + c, lanes), hn::Add(low, high)), to + c, lanes);
    }
  }
  for (; row < rows; ++row) {
    for (int64_t c = 0; c < cols; c += kLanesOf<T>)
      store_lanes(hn::Add(load_lanes(to + c, cols - c), f(row, c, cols - c)), to + c, cols - c);
  }
  (void)d;
}

// One block of rows of channels.
template <class T>
HWY_INLINE void block_sums(const T* x, const T* dy, int64_t rows, int64_t cols,
                           const ChannelSums<LaneOf<T>>& to) {
  const TagOf<T> d;
  sum_rows<T>(rows, cols, to.mean, [=](int64_t r, int64_t c, int64_t lanes) HWY_ATTR {
    return load_lanes(x + r * cols + c, lanes);
  });
  const VecOf<T> inverse = hn::Set(d, LaneOf<T>{1} / static_cast<LaneOf<T>>(rows));
  for (int64_t c = 0; c < cols; c += kLanesOf<T>)
    store_lanes(hn::Mul(load_lanes(to.mean + c, cols - c), inverse), to.mean + c, cols - c);
  const LaneOf<T>* mean = to.mean;
  sum_rows<T>(rows, cols, to.squares, [=](int64_t r, int64_t c, int64_t lanes) HWY_ATTR {
    const VecOf<T> distance = hn::Sub(load_lanes(x + r * cols + c, lanes), load_lanes(mean + c, lanes));
    return hn::Mul(distance, distance);
  });
  if (dy == nullptr) return;
  sum_rows<T>(rows, cols, to.dy, [=](int64_t r, int64_t c, int64_t lanes) HWY_ATTR {
    return load_lanes(dy + r * cols + c, lanes);
  });
  sum_rows<T>(rows, cols, to.product, [=](int64_t r, int64_t c, int64_t lanes) HWY_ATTR {
    const VecOf<T> distance = hn::Sub(load_lanes(x + r * cols + c, lanes), load_lanes(mean + c, lanes));
    return hn::Mul(load_lanes(dy + r * cols + c, lanes), distance);
  });
}

template <class T, class F>
HWY_INLINE LaneOf<T> sum_run(int64_t count, F f) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  VecOf<T> s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    s0 = hn::Add(s0, f(i, kLanes));
    s1 = hn::Add(s1, f(i + kLanes, kLanes));
    s2 = hn::Add(s2, f(i + 2 * kLanes, kLanes));
    s3 = hn::Add(s3, f(i + 3 * kLanes, kLanes));
  }
  for (; i < count; i += kLanes) s0 = hn::Add(s0, f(i, count - i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// The elements of one channel side by side.
template <class T>
HWY_INLINE void run_sums(const T* x, const T* dy, int64_t count, const ChannelSums<LaneOf<T>>& to) {
  const TagOf<T> d;
  *to.mean = sum_run<T>(count, [=](int64_t i, int64_t lanes) HWY_ATTR { return load_lanes(x + i, lanes); }) /
             static_cast<LaneOf<T>>(count);
  const VecOf<T> mean = hn::Set(d, *to.mean);
  *to.squares = sum_run<T>(count, [=](int64_t i, int64_t lanes) HWY_ATTR {
    VecOf<T> distance = hn::Sub(load_lanes(x + i, lanes), mean);
    if (lanes < kLanesOf<T>)
      distance = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(lanes)), distance);
    return hn::Mul(distance, distance);
  });
  if (dy == nullptr) return;
  *to.dy = sum_run<T>(count, [=](int64_t i, int64_t lanes) HWY_ATTR { return load_lanes(dy + i, lanes); });
  *to.product = sum_run<T>(count, [=](int64_t i, int64_t lanes) HWY_ATTR {
    return hn::Mul(load_lanes(dy + i, lanes), hn::Sub(load_lanes(x + i, lanes), mean));
  });
}

}  // namespace

template <class T>
HWY_NOINLINE void sums_of(const T* x, const T* dy, int64_t outer, int64_t channels, int64_t inner,
                          ChannelSums<LaneOf<T>>& sums, LaneOf<T>* work) {
  using W = LaneOf<T>;
  ChannelSums<W> block{work, work + channels, nullptr, nullptr};
  if (dy != nullptr) block.dy = work + 2 * channels, block.product = work + 3 * channels;
  sums.count = 0;
  if (outer * inner == 0) {
    for (W* each : {sums.mean, sums.squares, sums.dy, sums.product}) {
      if (each != nullptr) std::fill_n(each, channels, W{0});
    }
    return;
  }
  if (inner > 1) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = (o * channels + c) * inner;
        const ChannelSums<W> one{block.mean + c, block.squares + c, dy == nullptr ? nullptr : block.dy + c,
                                 dy == nullptr ? nullptr : block.product + c};
        run_sums<T>(x + at, dy == nullptr ? nullptr : dy + at, inner, one);
      }
      block.count = inner;
      sums.merge(block, channels);
    }
    return;
  }
  const int64_t rows = std::max<int64_t>(4, kBlockBytes / static_cast<int64_t>(sizeof(T)) / channels);
  for (int64_t row = 0; row < outer; row += rows) {
    block.count = std::min(rows, outer - row);
    block_sums<T>(x + row * channels, dy == nullptr ? nullptr : dy + row * channels, block.count, channels,
                  block);
    sums.merge(block, channels);
  }
}

template <class T>
HWY_NOINLINE void terms_of(const T* x, const T* dy, T* dx, int64_t outer, int64_t channels, int64_t inner,
                           const ChannelTerms<LaneOf<T>>& t) {
  const TagOf<T> d;
  const auto result =
      [](VecOf<T> x_part, VecOf<T> dy_part, VecOf<T> a, VecOf<T> b, VecOf<T> mean, VecOf<T> shift)
          HWY_ATTR { return hn::MulAdd(a, dy_part, hn::MulAdd(b, hn::Sub(x_part, mean), shift)); };
  if (inner > 1) {
    for (int64_t i = 0; i < outer * channels; ++i) {
      const int64_t c = i % channels, end = (i + 1) * inner;
      const VecOf<T> a = hn::Set(d, t.a[c]), b = hn::Set(d, t.b[c]), mean = hn::Set(d, t.mean[c]),
                     shift = hn::Set(d, t.shift[c]);
      for (int64_t at = i * inner; at < end; at += kLanesOf<T>)
        store_lanes(result(load_lanes(x + at, end - at), load_lanes(dy + at, end - at), a, b, mean, shift),
                    dx + at, end - at);
    }
    return;
  }
  for (int64_t row = 0; row < outer; ++row) {
    for (int64_t c = 0; c < channels; c += kLanesOf<T>) {
      const int64_t at = row * channels + c, lanes = channels - c;
      store_lanes(
          result(load_lanes(x + at, lanes), load_lanes(dy + at, lanes), load_lanes(t.a + c, lanes),
                 load_lanes(t.b + c, lanes), load_lanes(t.mean + c, lanes), load_lanes(t.shift + c, lanes)),
          dx + at, lanes);
    }
  }
}

#define PLIMSOLL_CHANNEL_SUMS(T, name)                                                              \
  void name##_sums(const T* x, const T* dy, int64_t outer, int64_t channels, int64_t inner,         \
                   ChannelSums<LaneOf<T>>& sums, LaneOf<T>* work) {                                 \
    sums_of<T>(x, dy, outer, channels, inner, sums, work);                                          \
  }                                                                                                 \
  void name##_terms(const T* x, const T* dy, T* dx, int64_t outer, int64_t channels, int64_t inner, \
                    const ChannelTerms<LaneOf<T>>& terms) {                                         \
    terms_of<T>(x, dy, dx, outer, channels, inner, terms);                                          \
  }
PLIMSOLL_CHANNEL_SUMS(float, f32)
PLIMSOLL_CHANNEL_SUMS(double, f64)
PLIMSOLL_CHANNEL_SUMS(Float16, f16)
PLIMSOLL_CHANNEL_SUMS(BFloat16, bf16)
#undef PLIMSOLL_CHANNEL_SUMS

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

// Distances to the means of both parts become distances to the common one.
template <class W>
void ChannelSums<W>::merge(const ChannelSums& other, int64_t channels) {
  if (other.count == 0) return;
  const W total = static_cast<W>(count + other.count), share = static_cast<W>(other.count) / total;
  const W weight = static_cast<W>(count) * share;
  const bool first = count == 0;
  for (int64_t c = 0; c < channels; ++c) {
    const W old = first ? other.mean[c] : mean[c], distance = other.mean[c] - old,
            now = old + distance * share;
    squares[c] = (first ? W{0} : squares[c]) + other.squares[c] + distance * distance * weight;
    mean[c] = now;
    if (dy == nullptr) continue;
    const W before = first ? W{0} : dy[c];
    product[c] = (first ? W{0} : product[c]) + other.product[c] + (old - now) * before +
                 (other.mean[c] - now) * other.dy[c];
    dy[c] = before + other.dy[c];
  }
  count += other.count;
}
template struct ChannelSums<float>;
template struct ChannelSums<double>;

#define PLIMSOLL_CHANNEL_SUMS(T, name)                                                                  \
  HWY_EXPORT(name##_sums);                                                                              \
  HWY_EXPORT(name##_terms);                                                                             \
  template <>                                                                                           \
  void channel_sums<T>(const T* x, const T* dy, int64_t outer, int64_t channels, int64_t inner,         \
                       ChannelSums<LaneOf<T>>& sums, LaneOf<T>* work) {                                 \
    HWY_DYNAMIC_DISPATCH(name##_sums)(x, dy, outer, channels, inner, sums, work);                       \
  }                                                                                                     \
  template <>                                                                                           \
  void channel_terms<T>(const T* x, const T* dy, T* dx, int64_t outer, int64_t channels, int64_t inner, \
                        const ChannelTerms<LaneOf<T>>& terms) {                                         \
    HWY_DYNAMIC_DISPATCH(name##_terms)(x, dy, dx, outer, channels, inner, terms);                       \
  }
PLIMSOLL_CHANNEL_SUMS(float, f32)
PLIMSOLL_CHANNEL_SUMS(double, f64)
PLIMSOLL_CHANNEL_SUMS(Float16, f16)
PLIMSOLL_CHANNEL_SUMS(BFloat16, bf16)
#undef PLIMSOLL_CHANNEL_SUMS

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
