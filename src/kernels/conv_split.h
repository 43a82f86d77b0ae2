// How a convolution's output is cut into groups of neighbouring pixels, and which of them need a padded
// copy of the image's edge. Plain arithmetic, shared by the kernel and the question how much scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernels/conv.h"

namespace plimsoll::kernels {

// Taps from first to last, padding between dilated ones included.
inline int64_t conv_extent(int64_t kernel, int64_t dilation) {
  return checked_add(checked_mul(kernel - 1, dilation), 1);
}

// Input pixels that `count` neighbouring output pixels reach in one row.
inline int64_t conv_reach(const ConvShape& s, int64_t count) {
  return checked_add(checked_mul(count - 1, s.stride_w), conv_extent(s.kernel_w, s.dilation_w));
}

struct ConvSplit {
  int64_t pixels = 1;  // of a group
  int64_t per_row = 0;
  // Groups [first_direct, end_direct) read the image; those before and behind read the left and the
  // right strip. Without a direct one, all read the left strip.
  int64_t first_direct = 0, end_direct = 0;
  int64_t left_pixels = 0, right_pixels = 0;  // widths of the strips

  bool is_left(int64_t group) const { return group < first_direct; }
  bool is_right(int64_t group) const { return group >= end_direct; }
};

// copies: none may read the image, because it is not in the type that is computed in.
inline ConvSplit split_rows(const ConvShape& s, int64_t pixels, bool copies) {
  ConvSplit split;
  split.pixels = pixels;
  split.per_row = ceil_div(s.out_w, pixels);
  if (copies) {
    split.first_direct = split.end_direct = split.per_row;
    split.left_pixels = conv_reach(s, split.per_row * pixels);
    return split;
  }
  const int64_t step = pixels * s.stride_w;
  const int64_t reach = conv_reach(s, pixels);
  split.first_direct = std::clamp<int64_t>(ceil_div(s.pad_left, step), 0, split.per_row);
  split.end_direct = std::clamp<int64_t>(floor_div(s.in_w + s.pad_left - reach, step) + 1, 0, split.per_row);
  if (split.end_direct <= split.first_direct) split.first_direct = split.end_direct = split.per_row;
  if (split.first_direct > 0) split.left_pixels = conv_reach(s, split.first_direct * pixels);
  const int64_t right = split.per_row - split.end_direct;
  if (right > 0) split.right_pixels = conv_reach(s, right * pixels);
  return split;
}

// The widest strips that any width of image can need, where groups may read the image.
inline int64_t strip_pixels_bound(const ConvShape& s, int64_t pixels, int64_t pad_right) {
  const int64_t step = checked_mul(pixels, s.stride_w);
  const int64_t left = std::max<int64_t>(0, ceil_div(s.pad_left, step));
  const int64_t right = pad_right == 0 ? 1 : checked_add(pad_right / step, 2);
  int64_t bound = conv_reach(s, checked_mul(right, pixels));
  if (left > 0) bound = checked_add(bound, conv_reach(s, checked_mul(left, pixels)));
  return bound;
}

// What a strip that copies a whole row can be wider than the image.
inline int64_t copied_pixels_bound(const ConvShape& s, int64_t pixels, int64_t pad_right) {
  const int64_t pads = checked_add(std::max<int64_t>(0, s.pad_left), pad_right);
  return checked_add(pads,
                     checked_add(checked_mul(pixels, s.stride_w), conv_extent(s.kernel_w, s.dilation_w)));
}

}  // namespace plimsoll::kernels
