// Convolutions in bfloat16, where the attribute `rounded` asks for it: a product whose rows are put together
// as it asks for them.
#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"
#include "kernels/rounded_gemm.h"
#include "ops/conv_common.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

// Rows of floats side by side are the matrix that the product wants.
bool is_matrix(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w;
}

// What the kernel sees from one output pixel, zeros outside of the image.
struct Patches {
  const ConvShape& s;
  const float* x;         // one of these two
  const BFloat16* image;  // rounded

  static void read(const void* context, int64_t row, BFloat16* to) {
    static_cast<const Patches*>(context)->read_row(row, to);
  }

  void read_row(int64_t row, BFloat16* to) const {
    const int64_t column = row % s.out_w, line = row / s.out_w % s.out_h, n = row / s.out_w / s.out_h;
    for (int64_t ky = 0; ky < s.kernel_h; ++ky, to += s.kernel_w * s.in_c) {
      const int64_t y = line * s.stride_h - s.pad_top + ky * s.dilation_h;
      if (y < 0 || y >= s.in_h) {
        zero(to, s.kernel_w);
      } else {
        read_line((n * s.in_h + y) * s.in_w, column * s.stride_w - s.pad_left, to);
      }
    }
  }

 private:
  // The taps of one line of the kernel; the first is at column `first` of the line that begins at `pixel`.
  void read_line(int64_t pixel, int64_t first, BFloat16* to) const {
    if (s.dilation_w > 1) {
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t at = first + kx * s.dilation_w;
        at >= 0 && at < s.in_w ? copy(pixel + at, 1, to + kx * s.in_c) : zero(to + kx * s.in_c, 1);
      }
      return;
    }
    const int64_t before = std::clamp<int64_t>(-first, 0, s.kernel_w);
    const int64_t end = std::clamp<int64_t>(s.in_w - first, before, s.kernel_w);
    if (before > 0) zero(to, before);
    if (end > before) copy(pixel + first + before, end - before, to + before * s.in_c);
    if (end < s.kernel_w) zero(to + end * s.in_c, s.kernel_w - end);
  }
  void copy(int64_t pixel, int64_t pixels, BFloat16* to) const {
    if (image == nullptr) return kernels::narrow(x + pixel * s.in_c, to, pixels * s.in_c);
    std::memcpy(static_cast<void*>(to), image + pixel * s.in_c,
                static_cast<size_t>(pixels * s.in_c) * sizeof(BFloat16));
  }
  void zero(BFloat16* to, int64_t pixels) const {
    std::memset(static_cast<void*>(to), 0, static_cast<size_t>(pixels * s.in_c) * sizeof(BFloat16));
  }
};

void round_image(const ConvShape& s, const float* x, BFloat16* image, int threads) {
  const int64_t line = s.in_w * s.in_c;
  kernels::parallel_for(threads, s.batch * s.in_h,
                        [&](int64_t i) { kernels::narrow(x + i * line, image + i * line, line); });
}

}  // namespace

bool is_fit_for_rounded(const ConvAttrs& a, ElementType type, std::span<const int64_t> w) {
  return a.rounded && a.groups == 1 && a.window.channels_last && type == ElementType::kFloat && w.size() == 4;
}

bool rounds_image(const ConvShape& s) {
  return s.kernel_h > 1 || s.kernel_w > 1;
}

kernels::GemmShape rounded_product(const ConvShape& s) {
  return {s.batch * s.out_h * s.out_w, s.kernel_h * s.kernel_w * s.in_c, s.out_c};
}

void pack_rounded_conv(const ConvShape& s, const kernels::ConvWeights<>& weights, void* packed) {
  const kernels::GemmShape product = rounded_product(s);
  // Taps lie side by side, whatever plane they are of.
  kernels::pack_rounded_b(
      product.k, product.n,
      {weights.data, weights.in_stride, weights.out_stride, s.in_c, weights.column_stride, weights.scale},
      packed);
}

void run_rounded_conv(const ConvShape& s, const float* x, const void* packed, float* y,
                      const kernels::ConvEpilogue<>& epilogue, BFloat16* image, void* working, int threads) {
  kernels::GemmEpilogue<> e;
  e.bias = epilogue.bias, e.addend = epilogue.addend, e.addend_stride = s.out_c;
  e.activation = epilogue.activation;
  kernels::RoundedLeft left{x, s.in_c};
  const bool rounds = rounds_image(s);
  const Patches patches{s, x, rounds ? image : nullptr};
  if (!is_matrix(s)) left = {nullptr, 0, 1, Patches::read, &patches};
  if (rounds) round_image(s, x, image, threads);
  kernels::rounded_gemm(rounded_product(s), left, packed, {y, s.out_c}, e, working, threads);
}

}  // namespace plimsoll
