// How a convolution by Winograd's way is cut into tiles and blocks, and where things lie in its scratch.
// Plain arithmetic, shared by the kernel and the question how much scratch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernels/winograd.h"

namespace plimsoll::kernels {

// Of the instruction set.
struct WinogradVectors {
  int64_t lanes = 4;  // floats in a vector; two of them are a panel of output channels
  int64_t rows = 6;   // of a tile of the product
};

// A block of tiles is transformed as a whole into (m + 2)^2 matrices of tiles x input channels, those are
// multiplied with one panel of output channels after the other, and each panel's products become pixels while
// they are near.
struct WinogradPlan {
  int64_t m = 2, points = 16;
  int64_t tiles_h = 0, tiles_w = 0;  // of a part: the pixels of an image that dilation lets meet each other
  int64_t tiles = 0;                 // of all parts of all images
  int64_t panels = 0;
  int64_t block = 0, blocks = 0;  // tiles of a block, at most
  bool shares_block = false;      // threads transform a block together, then share out its panels
  // In floats.
  int64_t row = 0, plane = 0;  // of transformed input: a tile's channels, a point's tiles
  int64_t product_plane = 0;
  int64_t input_floats = 0, product_floats = 0, zero_floats = 0;
};

// Transformed input stays in the second-level cache, unless weights that do not stay there either would come
// by too often.
inline constexpr int64_t kWinogradNear = 512 << 10, kWinogradFar = 1 << 20;

inline int64_t winograd_weight_floats(const ConvShape& s, const WinogradPlan& p, int64_t lanes) {
  return checked_mul(checked_mul(p.points, s.in_c), round_up(s.out_c, lanes));
}

// The most tiles of a block, for every size of image.
inline int64_t most_block_tiles(const ConvShape& s, const WinogradPlan& p, const WinogradVectors& v) {
  const bool near = winograd_weight_floats(s, p, v.lanes) * 4 <= kWinogradFar;
  const int64_t fit = (near ? kWinogradNear : kWinogradFar) / (p.points * p.row * 4);
  return std::max(fit / v.rows, near ? int64_t{1} : int64_t{2}) * v.rows;
}

inline void set_block(WinogradPlan& p, const WinogradVectors& v, int64_t tiles) {
  // Planes that are a power of two apart would meet in the same lines of the cache.
  const int64_t skew = 16;
  p.block = tiles;
  p.plane = checked_mul(tiles, p.row) + skew;
  p.product_plane = tiles * 2 * v.lanes + skew;
  p.input_floats = round_up(checked_mul(p.points, p.plane), 16);
  p.product_floats = round_up(checked_mul(p.points, p.product_plane), 16);
}

inline WinogradPlan plan_channels(const ConvShape& s, WinogradForm form, const WinogradVectors& v) {
  WinogradPlan p;
  p.m = static_cast<int64_t>(form);
  p.points = (p.m + 2) * (p.m + 2);
  p.panels = ceil_div(s.out_c, 2 * v.lanes);
  p.row = round_up(std::max<int64_t>(s.in_c, 1), v.lanes);
  p.zero_floats = round_up(p.row, 16);
  return p;
}

inline WinogradPlan plan_winograd(const ConvShape& s, WinogradForm form, const WinogradVectors& v,
                                  int threads) {
  WinogradPlan p = plan_channels(s, form, v);
  p.tiles_h = ceil_div(ceil_div(s.out_h, s.dilation_h), p.m);
  p.tiles_w = ceil_div(ceil_div(s.out_w, s.dilation_w), p.m);
  const int64_t parts = checked_mul(s.batch, checked_mul(s.dilation_h, s.dilation_w));
  p.tiles = checked_mul(parts, checked_mul(p.tiles_h, p.tiles_w));
  if (p.tiles == 0) return p;
  const int64_t most = most_block_tiles(s, p, v);
  p.blocks = ceil_div(p.tiles, most);
  const bool far = winograd_weight_floats(s, p, v.lanes) * 4 > kWinogradFar;
  p.shares_block = threads > 1 && p.panels >= 2 * threads && (far || p.blocks < threads);
  if (threads > 1 && !p.shares_block) p.blocks = std::min(p.tiles, ceil_div(p.blocks, threads) * threads);
  set_block(p, v, ceil_div(p.tiles, p.blocks));
  return p;
}

inline int64_t winograd_scratch_floats(const WinogradPlan& p, int64_t threads) {
  const int64_t inputs = p.shares_block ? 1 : std::min(threads, p.blocks);
  return p.zero_floats + checked_add(checked_mul(inputs, p.input_floats), threads * p.product_floats);
}

}  // namespace plimsoll::kernels
