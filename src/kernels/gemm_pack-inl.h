// Packing of GEMM operands, once per target. A panel is kPanel columns wide and stores row after row; the
// last one is a single vector wide if that holds its columns, and is padded with zeros.
#if defined(PLIMSOLL_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#undef PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#else
#define PLIMSOLL_KERNELS_GEMM_PACK_INL_H_
#endif

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

inline constexpr int64_t kPanel = 2 * kLanes;

HWY_INLINE int64_t panel_count(int64_t n) {
  return (n + kPanel - 1) / kPanel;
}

HWY_INLINE int64_t panel_width(int64_t n, int64_t panel) {
  return n - panel * kPanel <= kLanes ? kLanes : kPanel;
}

HWY_INLINE float load_any(const float* p) {
  float value;
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

// kLanes columns of 4 consecutive k each, transposed to 4 rows of kLanes.
HWY_INLINE void transpose_quads(const float* src, int64_t col_stride, float* dst, int64_t dst_stride) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> d2;
  const auto pair = [=](FloatVec x) HWY_ATTR { return hn::BitCast(d2, x); };
  const FloatVec r0 = load_quads(d, src, col_stride);
  const FloatVec r1 = load_quads(d, src + col_stride, col_stride);
  const FloatVec r2 = load_quads(d, src + 2 * col_stride, col_stride);
  const FloatVec r3 = load_quads(d, src + 3 * col_stride, col_stride);
  const auto low01 = pair(hn::InterleaveLower(d, r0, r1)), low23 = pair(hn::InterleaveLower(d, r2, r3));
  const auto high01 = pair(hn::InterleaveUpper(d, r0, r1)), high23 = pair(hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)), d, dst + dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)), d, dst + 2 * dst_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)), d, dst + 3 * dst_stride);
}

HWY_INLINE void pack_columns(int64_t k0, int64_t k1, int64_t col0, int64_t col1, const float* b,
                             int64_t row_stride, int64_t col_stride, float* dst, int64_t width) {
  for (int64_t k = k0; k < k1; ++k) {
    for (int64_t col = col0; col < col1; ++col) {
      dst[k * width + col] = load_any(b + k * row_stride + col * col_stride);
    }
  }
}

// `b` points at the panel's first column; `cols` of the panel's `width` columns exist.
HWY_INLINE void pack_panel(int64_t k, int64_t cols, int64_t width, const float* b, int64_t row_stride,
                           int64_t col_stride, float* dst) {
  const FloatTag d;
  if (cols < width) std::memset(dst, 0, static_cast<size_t>(k * width) * sizeof(float));
  int64_t done_cols = 0;
  if (col_stride == 1) {
    for (; done_cols + kLanes <= cols; done_cols += kLanes) {
      const float* from = b + done_cols;
      for (int64_t row = 0; row < k; ++row) {
        hn::Store(hn::LoadU(d, from + row * row_stride), d, dst + row * width + done_cols);
      }
    }
  } else if (row_stride == 1) {
    const int64_t quads = k & ~int64_t{3};
    for (; done_cols + kLanes <= cols; done_cols += kLanes) {
      const float* from = b + done_cols * col_stride;
      for (int64_t row = 0; row < quads; row += 4) {
        transpose_quads(from + row, col_stride, dst + row * width + done_cols, width);
      }
    }
    pack_columns(quads, k, 0, done_cols, b, row_stride, col_stride, dst, width);
  }
  pack_columns(0, k, done_cols, cols, b, row_stride, col_stride, dst, width);
}

// Copies a block of A so that its rows are contiguous and `dst_stride` apart.
HWY_INLINE void copy_rows(int64_t rows, int64_t k, const GemmLeft& a, float* dst, int64_t dst_stride) {
  if (k == 0) return;
  if (a.col_stride == 1) {
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(dst + row * dst_stride, a.data + row * a.row_stride,
                  static_cast<size_t>(k) * sizeof(float));
    }
    return;
  }
  int64_t done = 0;
  if (a.row_stride == 1) {  // A is transposed: the same transposition, with the roles of rows and k swapped.
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
  }
  for (; done < rows; ++done) {
    const float* from = a.data + done * a.row_stride;
    for (int64_t col = 0; col < k; ++col) dst[done * dst_stride + col] = from[col * a.col_stride];
  }
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
