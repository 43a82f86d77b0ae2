#include "kernels/conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "kernels/conv_few.h"
#include "kernels/conv_split.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// The ways to fill the registers: `pixels` to a group, and per number of vectors the kernels for
// 1, 2, ... groups.
struct ConvVariant {
  int pixels;
  double cost;  // relative time per pixel
  int max_groups[2];
  ConvTileFunction tiles[2][kMaxConvGroups];
};

template <int kPixels, int kVecs, int... kIndex>
constexpr void fill_tiles(ConvTileFunction* tiles, std::integer_sequence<int, kIndex...>) {
  ((tiles[kIndex] = &conv_tile<kIndex + 1, kPixels, kVecs>), ...);
}

template <int kPixels, int kSingle, int kDouble>
constexpr ConvVariant make_variant(double cost) {
  ConvVariant variant{kPixels, cost, {kSingle, kDouble}, {}};
  fill_tiles<kPixels, 1>(variant.tiles[0], std::make_integer_sequence<int, kSingle>());
  fill_tiles<kPixels, 2>(variant.tiles[1], std::make_integer_sequence<int, kDouble>());
  return variant;
}

#if HWY_TARGET <= HWY_AVX3  // 32 registers
constexpr ConvVariant kVariants[] = {make_variant<7, 4, 2>(1.0), make_variant<4, 7, 3>(1.01),
                                     make_variant<1, 12, 12>(1.1)};
#else
constexpr ConvVariant kVariants[] = {make_variant<2, 6, 3>(1.0), make_variant<1, 12, 6>(1.01)};
#endif

constexpr int64_t kPanel = 2 * kFloatLanes;
constexpr int64_t kStripBytes = 512 << 10;
constexpr int64_t kSmallWeights = 512 << 10, kSmallBand = 128 << 10, kLargeBand = 1 << 20;

const ConvVariant& choose_variant(int64_t out_w) {
  const ConvVariant* best = &kVariants[0];
  double least = 0;
  for (const ConvVariant& v : kVariants) {
    const double cost = v.cost * static_cast<double>(ceil_div(out_w, v.pixels) * v.pixels);
    if (&v == &kVariants[0] || cost < least) best = &v, least = cost;
  }
  return *best;
}

int64_t panels_per_group(const ConvShape& s) {
  return ceil_div(s.out_c / s.groups, kPanel);
}

int64_t taps(const ConvShape& s) {
  return s.kernel_h * s.kernel_w * (s.in_c / s.groups);
}

int64_t packed_group_floats(const ConvShape& s) {
  return round_up(s.out_c / s.groups, kFloatLanes) * taps(s);
}

void pack_panel(const ConvShape& s, const ConvWeights& w, int64_t out_first, int64_t cols, int64_t width,
                float* packed) {
  const int64_t in_c = s.in_c / s.groups;
  const char* data = static_cast<const char*>(w.data);
  for (int64_t ic = 0; ic < in_c; ++ic) {
    for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
        float* to = packed + ((kh * s.kernel_w + kw) * in_c + ic) * width;
        const int64_t from = ic * w.in_stride + kh * w.row_stride + kw * w.column_stride;
        for (int64_t o = 0; o < cols; ++o) {
          const int64_t out = out_first + o;
          float value;
          std::memcpy(&value,
                      data + (from + out / w.block * w.block_stride + out % w.block * w.out_stride) * 4,
                      sizeof value);
          to[o] = w.scale == nullptr ? value : value * w.scale[out];
        }
        for (int64_t o = cols; o < width; ++o) to[o] = 0;
      }
    }
  }
}

size_t packed_bytes(const ConvShape& s) {
  const int64_t floats = checked_mul(round_up(s.out_c / s.groups, kFloatLanes),
                                     checked_mul(checked_mul(s.kernel_h, s.kernel_w), s.in_c / s.groups));
  return static_cast<size_t>(round_up(checked_mul(checked_mul(floats, s.groups), sizeof(float)), 64));
}

void pack(const ConvShape& s, const ConvWeights& weights, float* packed) {
  const int64_t out_c = s.out_c / s.groups;
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t panel = 0; panel < panels_per_group(s); ++panel) {
      const int64_t first = panel * kPanel;
      const int64_t cols = std::min(kPanel, out_c - first);
      const int64_t width = cols <= kFloatLanes ? kFloatLanes : kPanel;
      pack_panel(s, weights, g * out_c + first, cols, width,
                 packed + g * packed_group_floats(s) + first * taps(s));
    }
  }
}

ConvScratch scratch_need(const ConvShape& s, int64_t pad_bottom, int64_t pad_right) {
  ConvScratch need;
  int64_t widest = 0, reach = 0;
  for (const ConvVariant& v : kVariants) {
    widest = std::max(widest, strip_pixels_bound(s, v.pixels, pad_right));
    reach = std::max(reach, conv_reach(s, v.pixels));
  }
  const auto bytes = [&](int64_t pixels) {
    return round_up(checked_mul(checked_mul(pixels, s.in_c), sizeof(float)), 64);
  };
  if (s.pad_top > 0 || pad_bottom > 0) need.base_bytes = bytes(reach);
  need.bytes_per_row = bytes(widest);
  const int64_t least = checked_mul(conv_extent(s.kernel_h, s.dilation_h), need.bytes_per_row);
  need.limit_bytes = checked_add(need.base_bytes, std::max(kStripBytes, least));
  return need;
}

// One convolution on its way: the cut, and what every tile has in common.
class Conv {
 public:
  Conv(const ConvShape& shape, const float* x, const float* packed, float* y, const ConvEpilogue& epilogue,
       int64_t strip_bytes, int threads)
      : s_(shape),
        variant_(choose_variant(shape.out_w)),
        split_(split_rows(shape, variant_.pixels)),
        x_(x),
        packed_(packed),
        y_(y),
        epilogue_(epilogue) {
    const bool contiguous = s_.groups == 1 && (s_.dilation_w == 1 || s_.kernel_w == 1);
    common_.in_rows = s_.in_h;
    common_.kernel_h = s_.kernel_h;
    common_.dilation_h = s_.dilation_h;
    common_.segments = contiguous ? 1 : s_.kernel_w;
    common_.segment_stride = s_.dilation_w * s_.in_c;
    common_.segment_length = contiguous ? s_.kernel_w * s_.in_c : s_.in_c / s_.groups;
    common_.pixel_stride = s_.stride_w * s_.in_c;
    common_.out_stride = s_.out_pixel_stride;
    const ActivationKind kind = epilogue.activation.kind;
    common_.clamp = kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
    common_.low = kind == ActivationKind::kClip ? epilogue.activation.a : 0;
    common_.high = kind == ActivationKind::kClip ? epilogue.activation.b : HUGE_VALF;
    finish_ = kind != ActivationKind::kNone && !common_.clamp;
    strip_row_ = (split_.left_pixels + split_.right_pixels) * s_.in_c;
    cut(strip_bytes, threads);
  }

  int64_t tasks() const { return s_.batch * bands_ * chunks_; }

  // Tasks [first, last) on one thread.
  void work(int64_t first, int64_t last, float* zeros, float* strips) const {
    int64_t copied = -1;
    for (int64_t task = first; task < last; ++task) {
      const int64_t chunk = task % chunks_, band = task / chunks_ % bands_, image = task / chunks_ / bands_;
      const int64_t groups = s_.out_h * split_.per_row;
      Band b{image, groups * band / bands_, groups * (band + 1) / bands_, 0, 0, zeros, strips};
      if (bands_are_rows_) {
        b.first = s_.out_h * band / bands_ * split_.per_row;
        b.last = s_.out_h * (band + 1) / bands_ * split_.per_row;
      }
      if (b.first == b.last) continue;
      b.first_row = std::max<int64_t>(0, b.first / split_.per_row * s_.stride_h - s_.pad_top);
      b.end_row = std::min(s_.in_h, (b.last - 1) / split_.per_row * s_.stride_h - s_.pad_top +
                                        (s_.kernel_h - 1) * s_.dilation_h + 1);
      if (copied != task / chunks_) copy_strips(b);
      copied = task / chunks_;
      const int64_t panels = s_.groups * panels_per_group(s_);
      for (int64_t p = panels * chunk / chunks_; p < panels * (chunk + 1) / chunks_; ++p) run_panel(b, p);
    }
  }

 private:
  struct Band {
    int64_t image;
    int64_t first, last;         // groups, counted row by row
    int64_t first_row, end_row;  // input rows in the strips
    const float* zeros;
    float* strips;
  };

  // Bands small enough that their input and output stay in the second-level cache while all weights pass by,
  // larger if the weights do not stay there themselves; and that their strips fit the scratch.
  void cut(int64_t strip_bytes, int threads) {
    const auto kFloat = static_cast<int64_t>(sizeof(float));
    const int64_t row_bytes = (s_.in_w * s_.in_c * s_.stride_h + s_.out_w * s_.out_c) * kFloat;
    const int64_t weight_bytes = packed_group_floats(s_) * s_.groups * kFloat;
    const int64_t band_bytes = weight_bytes > kSmallWeights ? kLargeBand : kSmallBand;
    int64_t rows = s_.out_h;
    if (strip_row_ > 0) {
      const int64_t held = strip_bytes / (strip_row_ * kFloat);
      const int64_t extent = (s_.kernel_h - 1) * s_.dilation_h + 1;
      rows = std::clamp<int64_t>(held >= s_.in_h ? rows : (held - extent) / s_.stride_h + 1, 1, rows);
    }
    rows = std::clamp<int64_t>(band_bytes / std::max<int64_t>(1, row_bytes), 1, rows);
    bands_ = ceil_div(s_.out_h, rows);
    bands_are_rows_ = s_.out_h > 1;
    if (s_.out_h == 1) bands_ = std::clamp<int64_t>(ceil_div(row_bytes, band_bytes), 1, split_.per_row);
    if (threads > 1) {
      const int64_t most = bands_are_rows_ ? s_.out_h : split_.per_row;
      bands_ = std::min(most, round_up_to(bands_, threads));
      chunks_ =
          std::clamp<int64_t>(ceil_div(4 * threads, s_.batch * bands_), 1, s_.groups * panels_per_group(s_));
    }
  }
  static int64_t round_up_to(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

  void copy_strips(const Band& b) const {
    for (int64_t row = b.first_row; row < b.end_row; ++row) {
      const float* from = x_ + (b.image * s_.in_h + row) * s_.in_w * s_.in_c;
      float* to = b.strips + (row - b.first_row) * strip_row_;
      copy_strip(from, -s_.pad_left, split_.left_pixels, to);
      const int64_t right = split_.end_direct * split_.pixels * s_.stride_w - s_.pad_left;
      copy_strip(from, right, split_.right_pixels, to + split_.left_pixels * s_.in_c);
    }
  }

  // Columns [first, first + count) of a row of the image, zeros outside it.
  void copy_strip(const float* row, int64_t first, int64_t count, float* to) const {
    const int64_t begin = std::clamp<int64_t>(-first, 0, count);
    const int64_t end = std::clamp<int64_t>(s_.in_w - first, begin, count);
    std::fill(to, to + begin * s_.in_c, 0.0f);
    if (end > begin)
      std::memcpy(to + begin * s_.in_c, row + (first + begin) * s_.in_c,
                  static_cast<size_t>((end - begin) * s_.in_c) * sizeof(float));
    std::fill(to + end * s_.in_c, to + count * s_.in_c, 0.0f);
  }

  void run_panel(const Band& b, int64_t panel) const {
    const int64_t out_c = s_.out_c / s_.groups;
    const int64_t g = panel / panels_per_group(s_), first = panel % panels_per_group(s_) * kPanel;
    const int64_t channel = g * out_c + first;
    ConvTile tile = common_;
    tile.zeros = b.zeros;
    tile.cols = std::min(kPanel, out_c - first);
    tile.weights = packed_ + g * packed_group_floats(s_) + first * taps(s_);
    tile.bias = epilogue_.bias == nullptr ? nullptr : epilogue_.bias + channel;
    const int vecs = tile.cols <= kFloatLanes ? 0 : 1;
    const int64_t most = variant_.max_groups[vecs];
    tile.in_step = most * split_.pixels * common_.pixel_stride;
    tile.out_step = most * split_.pixels * s_.out_pixel_stride;
    Cursor at(*this, b, g * (s_.in_c / s_.groups), channel);
    for (int64_t left = b.last - b.first; left > 0;) {
      tile.repeats = std::max<int64_t>(1, std::min(at.direct_run(), left) / most);
      // The last two share what is left.
      const int64_t groups = left >= 2 * most || left == most ? most : left > most ? (left + 1) / 2 : left;
      for (int64_t i = 0; i < groups; ++i) at.take(tile.groups[i]);
      variant_.tiles[vecs][groups - 1](tile);
      if (finish_) finish(tile, groups);
      at.skip((tile.repeats - 1) * most);
      left -= groups + (tile.repeats - 1) * most;
    }
  }

  // Walks over the groups of a band.
  class Cursor {
   public:
    Cursor(const Conv& conv, const Band& b, int64_t in_channel, int64_t channel)
        : conv_(conv),
          first_row_(b.first_row),
          row_(b.first / conv.split_.per_row),
          column_(b.first % conv.split_.per_row) {
      const ConvShape& s = conv.s_;
      const ConvSplit& split = conv.split_;
      image_ = conv.x_ + b.image * s.in_h * s.in_w * s.in_c + in_channel;
      left_ = b.strips + in_channel;
      right_ = left_ + split.left_pixels * s.in_c;
      out_ = b.image * s.out_image_stride + channel;
      start_row();
    }

    void take(ConvGroup& group) {
      const ConvShape& s = conv_.s_;
      const ConvSplit& split = conv_.split_;
      const int64_t x = column_ * split.pixels;
      const bool left = split.is_left(column_), right = split.is_right(column_);
      const int64_t skipped = left ? 0 : right ? split.end_direct * split.pixels * s.stride_w : s.pad_left;
      group.origin = (left ? left_ : right ? right_ : image_) + (x * s.stride_w - skipped) * s.in_c;
      group.row_stride = left || right ? conv_.strip_row_ : s.in_w * s.in_c;
      group.first_row = left || right ? first_row_ : 0;
      group.row = in_row_;
      group.out = out_row_ + x * s.out_pixel_stride;
      group.addend = addend_row_ == nullptr ? nullptr : addend_row_ + x * s.out_pixel_stride;
      group.pixels = std::min<int64_t>(split.pixels, s.out_w - x);
      skip(1);
    }

    // Whole groups from here on that read the image itself.
    int64_t direct_run() const {
      const ConvSplit& split = conv_.split_;
      if (split.is_left(column_)) return 0;
      return std::max<int64_t>(0, std::min(split.end_direct, conv_.s_.out_w / split.pixels) - column_);
    }
    void skip(int64_t groups) {
      column_ += groups;
      if (column_ == conv_.split_.per_row) column_ = 0, ++row_, start_row();
    }

   private:
    void start_row() {
      const ConvShape& s = conv_.s_;
      in_row_ = row_ * s.stride_h - s.pad_top;
      const int64_t out = out_ + row_ * s.out_row_stride;
      out_row_ = conv_.y_ + out;
      addend_row_ = conv_.epilogue_.addend == nullptr ? nullptr : conv_.epilogue_.addend + out;
    }

    const Conv& conv_;
    int64_t first_row_;
    int64_t row_, column_;
    const float *image_, *left_, *right_;
    int64_t out_, in_row_;
    float* out_row_;
    const float* addend_row_;
  };

  // Activations too large to repeat in every kernel, while the tile is still in the first-level cache.
  void finish(const ConvTile& tile, int64_t groups) const {
    const FloatTag d;
    with_activation(d, epilogue_.activation, [&](auto activation) HWY_ATTR {
      for (int64_t i = 0; i < tile.repeats * groups; ++i) {
        const ConvGroup& group = tile.groups[i % groups];
        for (int64_t pixel = 0; pixel < group.pixels; ++pixel) {
          float* out = group.out + i / groups * tile.out_step + pixel * tile.out_stride;
          for (int64_t col = 0; col < tile.cols; col += kFloatLanes)
            store_lanes(activation(load_lanes(out + col, tile.cols - col)), out + col, tile.cols - col);
        }
      }
    });
  }

  const ConvShape& s_;
  const ConvVariant& variant_;
  const ConvSplit split_;
  const float* x_;
  const float* packed_;
  float* y_;
  const ConvEpilogue& epilogue_;
  ConvTile common_;
  bool finish_ = false;
  int64_t strip_row_ = 0;  // floats
  int64_t bands_ = 1, chunks_ = 1;
  bool bands_are_rows_ = false;
};

void run(const ConvShape& shape, const float* x, const float* packed, float* y, const ConvEpilogue& epilogue,
         const ConvScratch& need, int64_t scratch_per_thread, std::byte* scratch, int threads) {
  const Conv job(shape, x, packed, y, epilogue, scratch_per_thread - need.base_bytes, threads);
  const int64_t tasks = job.tasks();
  const auto workers = static_cast<int>(std::min<int64_t>(threads, tasks));
  parallel_for(workers, workers, [&](int64_t worker) {
    std::byte* own = scratch + worker * scratch_per_thread;
    std::memset(own, 0, static_cast<size_t>(need.base_bytes));
    job.work(tasks * worker / workers, tasks * (worker + 1) / workers, reinterpret_cast<float*>(own),
             reinterpret_cast<float*>(own + need.base_bytes));
  });
}

}  // namespace

size_t ConvPackedBytes(const ConvShape& s) {
  return packed_bytes(s);
}
void ConvPack(const ConvShape& s, const ConvWeights& weights, float* packed) {
  pack(s, weights, packed);
}
ConvScratch ConvScratchNeed(const ConvShape& s, int64_t pad_bottom, int64_t pad_right) {
  return scratch_need(s, pad_bottom, pad_right);
}
void ConvRun(const ConvShape& shape, const float* x, const float* packed, float* y,
             const ConvEpilogue& epilogue, const ConvScratch& need, int64_t scratch_per_thread,
             std::byte* scratch, int threads) {
  run(shape, x, packed, y, epilogue, need, scratch_per_thread, scratch, threads);
}

}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {
HWY_EXPORT(ConvPackedBytes);
HWY_EXPORT(ConvPack);
HWY_EXPORT(ConvScratchNeed);
HWY_EXPORT(ConvRun);

namespace {

bool is_empty(const ConvShape& s) {
  return s.batch == 0 || s.out_h == 0 || s.out_w == 0 || s.out_c == 0;
}

int64_t implied_padding(int64_t out, int64_t stride, int64_t extent, int64_t pad_first, int64_t in) {
  return std::max<int64_t>(0, (out - 1) * stride + extent - pad_first - in);
}

ConvShape with_strides(ConvShape s) {
  if (s.out_pixel_stride == 0) s.out_pixel_stride = s.out_c;
  if (s.out_row_stride == 0) s.out_row_stride = s.out_w * s.out_pixel_stride;
  if (s.out_image_stride == 0) s.out_image_stride = s.out_h * s.out_row_stride;
  return s;
}

// Without padding a 1x1 kernel sees one long row: fewer ends, and no small maps.
ConvShape normalized(const ConvShape& shape) {
  ConvShape s = with_strides(shape);
  const bool plain = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                     s.pad_top == 0 && s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w;
  if (plain && s.out_row_stride == s.out_w * s.out_pixel_stride &&
      s.out_image_stride == s.out_h * s.out_row_stride) {
    s.in_w = s.out_w = s.batch * s.in_h * s.in_w;
    s.in_h = s.out_h = s.batch = 1;
  }
  return s;
}

int64_t scratch_of_thread(const ConvShape& s, const ConvScratch& need) {
  const int64_t extent = conv_extent(s.kernel_h, s.dilation_h);
  const int64_t rows = std::min(s.in_h, (s.out_h - 1) * s.stride_h + extent);
  return std::min(need.limit_bytes, checked_add(need.base_bytes, checked_mul(rows, need.bytes_per_row)));
}

ConvScratch need_of(const ConvShape& s) {
  return conv_scratch(
      s, implied_padding(s.out_h, s.stride_h, conv_extent(s.kernel_h, s.dilation_h), s.pad_top, s.in_h),
      implied_padding(s.out_w, s.stride_w, conv_extent(s.kernel_w, s.dilation_w), s.pad_left, s.in_w));
}

}  // namespace

ConvWeights oihw_weights(const ConvShape& s, const void* data, const float* scale) {
  const int64_t plane = s.kernel_h * s.kernel_w;
  const int64_t out_stride = s.in_c / s.groups * plane;
  return {data, out_stride, plane, s.kernel_w, 1, s.out_c, s.out_c * out_stride, scale};
}

size_t conv_packed_bytes(const ConvShape& shape) {
  if (is_few_channel_conv(shape)) return conv_few_packed_bytes(shape);
  return HWY_DYNAMIC_DISPATCH(ConvPackedBytes)(shape);
}

void conv_pack(const ConvShape& shape, const ConvWeights& weights, void* packed) {
  if (is_few_channel_conv(shape)) return conv_few_pack(shape, weights, static_cast<float*>(packed));
  HWY_DYNAMIC_DISPATCH(ConvPack)(shape, weights, static_cast<float*>(packed));
}

ConvScratch conv_scratch(const ConvShape& shape, int64_t pad_bottom, int64_t pad_right) {
  if (is_few_channel_conv(shape)) return {};
  return HWY_DYNAMIC_DISPATCH(ConvScratchNeed)(shape, pad_bottom, pad_right);
}

size_t conv_scratch_bytes(const ConvShape& shape, int threads) {
  if (is_empty(shape)) return 0;
  const ConvShape s = normalized(shape);
  return static_cast<size_t>(checked_mul(threads, scratch_of_thread(s, need_of(s))));
}

void conv(const ConvShape& shape, const float* x, const void* packed, float* y, const ConvEpilogue& epilogue,
          void* scratch, int threads) {
  if (is_empty(shape)) return;
  if (is_few_channel_conv(shape))
    return conv_few(with_strides(shape), x, static_cast<const float*>(packed), y, epilogue, threads);
  const ConvShape s = normalized(shape);
  const ConvScratch need = need_of(s);
  HWY_DYNAMIC_DISPATCH(ConvRun)
  (s, x, static_cast<const float*>(packed), y, epilogue, need, scratch_of_thread(s, need),
   static_cast<std::byte*>(scratch), threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
