#include "kernels/resize.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/storage-inl.h"
#include "kernels/to_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// As many numbers as D has lanes.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_numbers(D d, const T* p) {
  if constexpr (sizeof(T) == 1) {
    return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), p)));
  } else {
    return load_all(d, p);
  }
}

// out[i] = a * x[i] + b * y[i], for i < count.
template <class T, class W>
void blend(const T* x, W a, const T* y, W b, W* out, int64_t count) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto va = hn::Set(d, a), vb = hn::Set(d, b);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(load_numbers(d, y + i), vb, hn::Mul(load_numbers(d, x + i), va)), d, out + i);
  for (; i < count; ++i) out[i] = a * static_cast<W>(x[i]) + b * static_cast<W>(y[i]);
}

// out[i] += a * x[i], for i < count.
template <class T, class W>
void add_scaled(const T* x, W a, W* out, int64_t count) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto va = hn::Set(d, a);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(load_numbers(d, x + i), va, hn::LoadU(d, out + i)), d, out + i);
  for (; i < count; ++i) out[i] += a * static_cast<W>(x[i]);
}

// out[i] = sum over taps of weight[t * stride] * in[index[t * stride] * pitch + i].
template <class T, class W>
void blend_taps(const T* in, int64_t pitch, int64_t taps, const int32_t* index, const float* weight,
                int64_t stride, W* out, int64_t count) {
  if (taps == 1)
    return blend<T, W>(in + index[0] * pitch, weight[0], in + index[0] * pitch, 0.0f, out, count);
  blend<T, W>(in + index[0] * pitch, weight[0], in + index[stride] * pitch, weight[stride], out, count);
  for (int64_t t = 2; t < taps; ++t) {
    const T* from = in + index[t * stride] * pitch;
    if constexpr (std::is_same_v<T, W>) {
      blend<T, W>(out, 1.0f, from, weight[t * stride], out, count);
    } else {
      add_scaled(from, weight[t * stride], out, count);
    }
  }
}

// A row of single elements: every lane has its own taps.
void blend_lanes(const float* in, const ResizeAxis& axis, float* out, int64_t& i) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= axis.out; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < axis.taps; ++t) {
      const auto from = hn::LoadU(di, axis.index + t * axis.out + i);
      sum = hn::MulAdd(hn::GatherIndex(d, in, from), hn::LoadU(d, axis.weight + t * axis.out + i), sum);
    }
    hn::StoreU(sum, d, out + i);
  }
}

template <class W>
void blend_row(const W* in, const ResizeAxis& axis, W* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<W, float>) blend_lanes(in, axis, out, i);
  for (; i < axis.out; ++i) {
    W sum = 0;
    for (int64_t t = 0; t < axis.taps; ++t)
      sum += in[axis.index[t * axis.out + i]] * axis.weight[t * axis.out + i];
    out[i] = sum;
  }
}

template <class W>
void resize_columns(const ResizeShape& s, const W* row, W* out) {
  for (int64_t m = 0; m < s.middle; ++m) {
    const W* from = row + m * s.columns.in * s.inner;
    W* to = out + m * s.columns.out * s.inner;
    if (s.inner == 1) {
      blend_row(from, s.columns, to);
      continue;
    }
    for (int64_t x = 0; x < s.columns.out; ++x)
      blend_taps<W, W>(from, s.inner, s.columns.taps, s.columns.index + x, s.columns.weight + x,
                       s.columns.out, to + x * s.inner, s.inner);
  }
}

// Output rows [first, last) of outer * rows.out. `wide` holds a blended row, and in 16 bits a finished one
// behind it.
template <class T>
void resize_band(const ResizeShape& s, const T* in, T* out, LaneOf<T>* wide, int64_t first, int64_t last) {
  const int64_t in_row = s.middle * s.columns.in * s.inner, out_row = s.middle * s.columns.out * s.inner;
  for (int64_t r = first; r < last; ++r) {
    const T* image = in + r / s.rows.out * s.rows.in * in_row;
    const int64_t y = r % s.rows.out;
    if (s.rows.index != nullptr)
      blend_taps(image, in_row, s.rows.taps, s.rows.index + y, s.rows.weight + y, s.rows.out, wide, in_row);
    T* to = out + r * out_row;
    if constexpr (kIsHalf<T>) {
      if (s.rows.index == nullptr) widen(image, wide, in_row);
      resize_columns(s, wide, wide + in_row);
      narrow(wide + in_row, to, out_row);
    } else {
      resize_columns<T>(s, s.rows.index != nullptr ? wide : image, to);
    }
  }
}

// Numbers of `bytes.from_zero` and so on to bytes.
void round_row(const float* row, const ResizeBytes& bytes, uint8_t* out, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  const float least = bytes.is_signed ? -128 : 0;
  const auto low = hn::Set(d, least - static_cast<float>(bytes.to_zero)),
             high = hn::Set(d, least + 255 - static_cast<float>(bytes.to_zero)),
             from = hn::Set(d, static_cast<float>(bytes.from_zero)), factor = hn::Set(d, bytes.factor);
  const auto zero = hn::Set(di, bytes.to_zero);
  const auto round = [&](const float* x, uint8_t* y) HWY_ATTR {
    const auto value = hn::Mul(hn::Sub(hn::LoadU(d, x), from), factor);
    store_bytes(hn::Add(nearest_within(hn::Min(hn::Max(value, low), high)), zero), y);
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) round(row + i, out + i);
  if (i == count) return;
  HWY_ALIGN float some[kLanes] = {};
  HWY_ALIGN uint8_t rounded[kLanes];
  std::copy_n(row + i, count - i, some);
  round(some, rounded);
  std::copy_n(rounded, count - i, out + i);
}

template <class T>
void resize_bytes(const ResizeShape& s, const ResizeBytes& bytes, const T* in, uint8_t* out, float* wide,
                  int64_t first, int64_t last) {
  const int64_t in_row = s.middle * s.columns.in * s.inner, out_row = s.middle * s.columns.out * s.inner;
  constexpr int32_t kFirst = 0;
  constexpr float kWhole = 1;
  for (int64_t r = first; r < last; ++r) {
    const T* image = in + r / s.rows.out * s.rows.in * in_row;
    const int64_t y = r % s.rows.out;
    if (s.rows.index != nullptr) {
      blend_taps(image, in_row, s.rows.taps, s.rows.index + y, s.rows.weight + y, s.rows.out, wide, in_row);
    } else {
      blend_taps(image, in_row, 1, &kFirst, &kWhole, 1, wide, in_row);
    }
    resize_columns(s, wide, wide + in_row);
    round_row(wide + in_row, bytes, out + r * out_row, out_row);
  }
}

}  // namespace

void band_of_bytes(const ResizeShape& s, const ResizeBytes& bytes, const uint8_t* in, uint8_t* out,
                   float* wide, int64_t first, int64_t last) {
  if (bytes.is_signed)
    return resize_bytes(s, bytes, reinterpret_cast<const int8_t*>(in), out, wide, first, last);
  resize_bytes(s, bytes, in, out, wide, first, last);
}
void band_of_f32(const ResizeShape& s, const float* in, float* out, LaneOf<float>* wide, int64_t first,
                 int64_t last) {
  resize_band(s, in, out, wide, first, last);
}
void band_of_f64(const ResizeShape& s, const double* in, double* out, LaneOf<double>* wide, int64_t first,
                 int64_t last) {
  resize_band(s, in, out, wide, first, last);
}
void band_of_f16(const ResizeShape& s, const Float16* in, Float16* out, LaneOf<Float16>* wide, int64_t first,
                 int64_t last) {
  resize_band(s, in, out, wide, first, last);
}
void band_of_bf16(const ResizeShape& s, const BFloat16* in, BFloat16* out, LaneOf<BFloat16>* wide,
                  int64_t first, int64_t last) {
  resize_band(s, in, out, wide, first, last);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
namespace {

HWY_EXPORT(band_of_bytes);
HWY_EXPORT(band_of_f32);
HWY_EXPORT(band_of_f64);
HWY_EXPORT(band_of_f16);
HWY_EXPORT(band_of_bf16);

template <typename T>
void nearest_row(const ResizeShape& s, const T* row, T* out) {
  for (int64_t m = 0; m < s.middle; ++m) {
    const T* from = row + m * s.columns.in * s.inner;
    T* to = out + m * s.columns.out * s.inner;
    if (s.inner == 1) {
      for (int64_t x = 0; x < s.columns.out; ++x) to[x] = from[s.columns.index[x]];
      continue;
    }
    for (int64_t x = 0; x < s.columns.out; ++x)
      std::memcpy(to + x * s.inner, from + s.columns.index[x] * s.inner,
                  static_cast<size_t>(s.inner) * sizeof(T));
  }
}

template <typename T>
void nearest_band(const ResizeShape& s, const T* in, T* out, int64_t first, int64_t last) {
  const int64_t in_row = s.middle * s.columns.in * s.inner, out_row = s.middle * s.columns.out * s.inner;
  const T* shown = nullptr;  // what the output row before shows
  for (int64_t r = first; r < last; ++r) {
    const int64_t y = r % s.rows.out;
    const T* row =
        in + (r / s.rows.out * s.rows.in + (s.rows.index != nullptr ? s.rows.index[y] : 0)) * in_row;
    if (row == shown) {
      std::memcpy(out + r * out_row, out + (r - 1) * out_row, static_cast<size_t>(out_row) * sizeof(T));
    } else {
      nearest_row(s, row, out + r * out_row);
    }
    shown = row;
  }
}

// Cuts the output rows into one band per thread.
template <typename F>
void for_each_band(const ResizeShape& shape, int threads, F&& f) {
  const int64_t rows = shape.outer * shape.rows.out;
  const int64_t bands = std::max<int64_t>(1, std::min<int64_t>(threads, rows));
  parallel_for(threads, bands,
               [&](int64_t band) { f(band, rows * band / bands, rows * (band + 1) / bands); });
}

struct Bytes16 {
  uint64_t lo, hi;
};

}  // namespace

namespace {

template <typename T, typename F>
void resize_rows(const ResizeShape& s, LaneOf<T>* scratch, int threads, F&& band_function) {
  const int64_t wide = s.middle * s.inner * (s.columns.in + (kIsHalf<T> ? s.columns.out : 0));
  for_each_band(s, threads, [&](int64_t band, int64_t first, int64_t last) {
    band_function(scratch + band * wide, first, last);
  });
}

}  // namespace

void resize_linear(const ResizeShape& shape, const float* in, float* out, LaneOf<float>* scratch,
                   int threads) {
  resize_rows<float>(shape, scratch, threads, [&](LaneOf<float>* wide, int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(band_of_f32)(shape, in, out, wide, first, last);
  });
}
void resize_linear(const ResizeShape& shape, const double* in, double* out, LaneOf<double>* scratch,
                   int threads) {
  resize_rows<double>(shape, scratch, threads, [&](LaneOf<double>* wide, int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(band_of_f64)(shape, in, out, wide, first, last);
  });
}
void resize_linear(const ResizeShape& shape, const Float16* in, Float16* out, LaneOf<Float16>* scratch,
                   int threads) {
  resize_rows<Float16>(shape, scratch, threads, [&](LaneOf<Float16>* wide, int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(band_of_f16)(shape, in, out, wide, first, last);
  });
}
void resize_linear(const ResizeShape& shape, const BFloat16* in, BFloat16* out, LaneOf<BFloat16>* scratch,
                   int threads) {
  resize_rows<BFloat16>(shape, scratch, threads, [&](LaneOf<BFloat16>* wide, int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(band_of_bf16)(shape, in, out, wide, first, last);
  });
}

void resize_linear(const ResizeShape& shape, const ResizeBytes& bytes, const uint8_t* in, uint8_t* out,
                   float* scratch, int threads) {
  const int64_t wide = shape.middle * shape.inner * (shape.columns.in + shape.columns.out);
  for_each_band(shape, threads, [&](int64_t band, int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(band_of_bytes)(shape, bytes, in, out, scratch + band * wide, first, last);
  });
}

void resize_nearest(const ResizeShape& shape, const std::byte* in, std::byte* out, size_t width,
                    int threads) {
  auto typed = [&](auto element) {
    using T = decltype(element);
    for_each_band(shape, threads, [&](int64_t, int64_t first, int64_t last) {
      nearest_band(shape, reinterpret_cast<const T*>(in), reinterpret_cast<T*>(out), first, last);
    });
  };
  switch (width) {
    case 1:
      return typed(uint8_t{});
    case 2:
      return typed(uint16_t{});
    case 4:
      return typed(uint32_t{});
    case 8:
      return typed(uint64_t{});
    default:
      return typed(Bytes16{});
  }
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
