// Packing of GEMM operands, once per target. A panel is kPanel columns wide and stores row after row; the
// last one is a single vector wide if that holds its columns, and is padded with zeros.
#if defined(PLIMSOLL_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/gemm.h"
#include "kernels/gemm_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
inline constexpr int64_t kPanelOf = 2 * kLanesOf<T>;

template <class T>
HWY_INLINE int64_t panel_count(int64_t n) {
  return (n + kPanelOf<T> - 1) / kPanelOf<T>;
}

template <class T>
HWY_INLINE int64_t panel_width(int64_t n, int64_t panel) {
  return n - panel * kPanelOf<T> <= kLanesOf<T> ? kLanesOf<T> : kPanelOf<T>;
}

template <class T>
HWY_INLINE T load_any(const T* p) {
  T value;
  std::memcpy(&value, static_cast<const void*>(p), sizeof value);
  return value;
}

// Lane 4g + i of the result is p[4g * stride + i].
template <class D>
HWY_INLINE hn::Vec<D> load_quads(D d, const float* p, int64_t stride) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    const auto upper = load_quads(half, p + static_cast<int64_t>(hn::MaxLanes(half)) * stride, stride);
    return hn::Combine(d, upper, load_quads(half, p, stride));
  }
}

// kFloatLanes columns of 4 consecutive k each, transposed: store(i, row i).
template <class Store>
HWY_INLINE void transpose_quads(const float* src, int64_t col_stride, const Store& store) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> d2;
  const auto pair = [=](FloatVec x) HWY_ATTR { return hn::BitCast(d2, x); };
  const FloatVec r0 = load_quads(d, src, col_stride);
  const FloatVec r1 = load_quads(d, src + col_stride, col_stride);
  const FloatVec r2 = load_quads(d, src + 2 * col_stride, col_stride);
  const FloatVec r3 = load_quads(d, src + 3 * col_stride, col_stride);
  const auto low01 = pair(hn::InterleaveLower(d, r0, r1)), low23 = pair(hn::InterleaveLower(d, r2, r3));
  const auto high01 = pair(hn::InterleaveUpper(d, r0, r1)), high23 = pair(hn::InterleaveUpper(d, r2, r3));
  store(0, hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)));
  store(1, hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)));
  store(2, hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)));
  store(3, hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)));
}
HWY_INLINE void transpose_quads(const float* src, int64_t col_stride, float* dst, int64_t dst_stride) {
  transpose_quads(src, col_stride,
                  [=](int i, FloatVec row) HWY_ATTR { hn::StoreU(row, FloatTag(), dst + i * dst_stride); });
}

// 4 columns of 4 consecutive k each, of 16 bits, transposed to 4 rows.
HWY_INLINE void transpose_shorts(const uint16_t* src, int64_t col_stride, uint16_t* dst, int64_t dst_stride) {
  const hn::FixedTag<uint16_t, 4> quad;
  const hn::FixedTag<uint16_t, 8> d;
  const hn::FixedTag<uint32_t, 4> d2;
  const auto load = [=](int64_t column) HWY_ATTR {
    return hn::ZeroExtendVector(d, hn::LoadU(quad, src + column * col_stride));
  };
  const auto low = hn::BitCast(d2, hn::InterleaveLower(d, load(0), load(1)));
  const auto high = hn::BitCast(d2, hn::InterleaveLower(d, load(2), load(3)));
  const auto first = hn::BitCast(d, hn::InterleaveLower(d2, low, high));
  const auto last = hn::BitCast(d, hn::InterleaveUpper(d2, low, high));
  hn::StoreU(hn::LowerHalf(quad, first), quad, dst);
  hn::StoreU(hn::UpperHalf(quad, first), quad, dst + dst_stride);
  hn::StoreU(hn::LowerHalf(quad, last), quad, dst + 2 * dst_stride);
  hn::StoreU(hn::UpperHalf(quad, last), quad, dst + 3 * dst_stride);
}

// A vector of columns, 4 consecutive k each, to 4 rows.
template <class T>
HWY_INLINE void transpose_columns(const T* src, int64_t col_stride, T* dst, int64_t dst_stride) {
  if constexpr (std::is_same_v<T, float>) {
    transpose_quads(src, col_stride, dst, dst_stride);
  } else if constexpr (kIsHalf<T>) {
    for (int64_t col = 0; col < kLanesOf<T>; col += 4)
      transpose_shorts(bits_of(src + col * col_stride), col_stride, bits_of(dst + col), dst_stride);
  } else {
    for (int64_t col = 0; col < kLanesOf<T>; ++col) {
      for (int64_t k = 0; k < 4; ++k) dst[k * dst_stride + col] = load_any(src + col * col_stride + k);
    }
  }
}

template <class T>
HWY_INLINE void pack_columns(int64_t k0, int64_t k1, int64_t col0, int64_t col1, const T* b,
                             int64_t row_stride, int64_t col_stride, T* dst, int64_t width) {
  for (int64_t k = k0; k < k1; ++k) {
    for (int64_t col = col0; col < col1; ++col) {
      dst[k * width + col] = load_any(b + k * row_stride + col * col_stride);
    }
  }
}

// `b` points at the panel's first column; `cols` of the panel's `width` columns exist.
template <class T>
HWY_INLINE void pack_panel(int64_t k, int64_t cols, int64_t width, const T* b, int64_t row_stride,
                           int64_t col_stride, T* dst) {
  constexpr int64_t kLanes = kLanesOf<T>;
  if (cols < width) std::memset(static_cast<void*>(dst), 0, static_cast<size_t>(k * width) * sizeof(T));
  int64_t done_cols = 0;
  if (col_stride == 1) {
    for (; done_cols + kLanes <= cols; done_cols += kLanes) {
      const T* from = b + done_cols;
      for (int64_t row = 0; row < k; ++row)
        std::memcpy(static_cast<void*>(dst + row * width + done_cols),
                    static_cast<const void*>(from + row * row_stride), kLanes * sizeof(T));
    }
  } else if (row_stride == 1) {
    const int64_t quads = k & ~int64_t{3};
    for (; done_cols + kLanes <= cols; done_cols += kLanes) {
      const T* from = b + done_cols * col_stride;
      for (int64_t row = 0; row < quads; row += 4) {
        transpose_columns(from + row, col_stride, dst + row * width + done_cols, width);
      }
    }
    pack_columns(quads, k, 0, done_cols, b, row_stride, col_stride, dst, width);
  }
  pack_columns(0, k, done_cols, cols, b, row_stride, col_stride, dst, width);
}

// Whole panels [first, last) of a B whose rows are contiguous, past the caches: a few rows of all of them
// after the other, so that B is read as it lies, and every line of `dst` is written once and not read before.
template <class T>
HWY_INLINE void stream_rows(int64_t k, int64_t first, int64_t last, const T* b, int64_t row_stride, T* dst) {
  constexpr int64_t kRows = 8, kPanel = kPanelOf<T>;
  const hn::CappedTag<uint8_t, 64> d;
  constexpr auto kBytes = static_cast<int64_t>(kPanel * sizeof(T)), kLanes = int64_t{hn::MaxLanes(d)};
  for (int64_t row0 = 0; row0 < k; row0 += kRows) {
    const int64_t row1 = std::min(row0 + kRows, k);
    for (int64_t panel = first; panel < last; ++panel) {
      for (int64_t row = row0; row < row1; ++row) {
        const auto* from = reinterpret_cast<const uint8_t*>(b + row * row_stride + panel * kPanel);
        auto* to = reinterpret_cast<uint8_t*>(dst + (panel * k + row) * kPanel);
        for (int64_t at = 0; at < kBytes; at += kLanes) hn::Stream(hn::LoadU(d, from + at), d, to + at);
      }
    }
  }
  hwy::FlushStream();
}

// The same of a B whose columns are contiguous; k >= 4. The last rows may be written twice.
HWY_INLINE void stream_columns(int64_t k, int64_t first, int64_t last, const float* b, int64_t col_stride,
                               float* dst) {
  constexpr int64_t kPanel = kPanelOf<float>;
  for (int64_t panel = first; panel < last; ++panel) {
    for (int64_t next = 0; next < k; next += 4) {
      const int64_t row = std::min(next, k - 4);
      for (int64_t col = 0; col < kPanel; col += kFloatLanes) {
        float* to = dst + (panel * k + row) * kPanel + col;
        transpose_quads(b + (panel * kPanel + col) * col_stride + row, col_stride,
                        [=](int i, FloatVec v) HWY_ATTR { hn::Stream(v, FloatTag(), to + i * kPanel); });
      }
    }
  }
  hwy::FlushStream();
}

template <class T>
bool streams(int64_t k, int64_t n, const GemmRight& b) {
  constexpr int64_t kStreamedBytes = 1 << 20;
  const bool turned = std::is_same_v<T, float> && b.row_stride == 1 && k >= 4;
  return (b.col_stride == 1 || turned) && k * n * static_cast<int64_t>(sizeof(T)) > kStreamedBytes;
}

template <class T>
HWY_INLINE void stream_panels(int64_t k, int64_t first, int64_t last, const GemmRight& b, T* dst) {
  const auto* from = static_cast<const T*>(b.data);
  if (b.col_stride == 1) return stream_rows<T>(k, first, last, from, b.row_stride, dst);
  if constexpr (std::is_same_v<T, float>) stream_columns(k, first, last, from, b.col_stride, dst);
}

// A vector's worth of A's rows, from one of its columns, widened.
template <class T>
HWY_INLINE void copy_column(const T* from, int64_t rows, LaneOf<T>* dst, int64_t dst_stride) {
  HWY_ALIGN LaneOf<T> lanes[kLanesOf<T>];
  hn::Store(load_lanes(from, rows), TagOf<T>(), lanes);
  for (int64_t i = 0; i < rows; ++i) dst[i * dst_stride] = lanes[i];
}

// Copies a block of A so that its rows are contiguous and `dst_stride` apart, in what is computed in.
template <class T>
HWY_INLINE void copy_rows(int64_t rows, int64_t k, const GemmLeft<T>& a, LaneOf<T>* dst, int64_t dst_stride) {
  constexpr int64_t kLanes = kLanesOf<T>;
  if (k == 0) return;
  if (a.col_stride == 1) {
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = a.data + row * a.row_stride;
      LaneOf<T>* to = dst + row * dst_stride;
      for (int64_t col = 0; col < k; col += kLanes)
        store_lanes(load_lanes(from + col, k - col), to + col, k - col);
    }
    return;
  }
  int64_t done = 0;
  if (a.row_stride == 1) {                     // A is transposed
    if constexpr (std::is_same_v<T, float>) {  // the same transposition, the roles of rows and k swapped
      for (; done + 4 <= rows; done += 4) {
        int64_t col = 0;
        for (; col + kLanes <= k; col += kLanes) {
          transpose_quads(a.data + done + col * a.col_stride, a.col_stride, dst + done * dst_stride + col,
                          dst_stride);
        }
        for (; col < k; ++col) {
          for (int64_t i = 0; i < 4; ++i)
            dst[(done + i) * dst_stride + col] = a.data[done + i + col * a.col_stride];
        }
      }
    } else {
      for (; done < rows; done += kLanes) {
        for (int64_t col = 0; col < k; ++col)
          copy_column(a.data + done + col * a.col_stride, std::min(kLanes, rows - done),
                      dst + done * dst_stride + col, dst_stride);
      }
    }
  }
  for (; done < rows; ++done) {
    const T* from = a.data + done * a.row_stride;
    for (int64_t col = 0; col < k; ++col)
      copy_column(from + col * a.col_stride, 1, dst + done * dst_stride + col, dst_stride);
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
