// Convolutions of one element type, once per target: conv_<type>.cpp instantiates this.
#if defined(PLIMSOLL_KERNELS_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_CONV_INL_H_
#undef PLIMSOLL_KERNELS_CONV_INL_H_
#else
#define PLIMSOLL_KERNELS_CONV_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "kernels/conv_functions.h"
#include "kernels/conv_split.h"
#include "kernels/conv_tile-inl.h"
#include "kernels/parallel.h"
#include "kernels/weight_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

// The ways to fill the registers: `pixels` to a group, and per number of vectors the kernels for
// 1, 2, ... groups.
template <class T>
struct ConvVariant {
  int pixels;
  double cost;  // relative time per pixel
  int max_groups[2];
  ConvTileFunction<T> tiles[2][kMaxConvGroups];
};

template <class T, int kPixels, int kVecs, int... kIndex>
constexpr void fill_tiles(ConvTileFunction<T>* tiles, std::integer_sequence<int, kIndex...>) {
  ((tiles[kIndex] = &conv_tile<T, kIndex + 1, kPixels, kVecs>), ...);
}

template <class T, int kPixels, int kSingle, int kDouble>
constexpr ConvVariant<T> make_variant(double cost) {
  ConvVariant<T> variant{kPixels, cost, {kSingle, kDouble}, {}};
  fill_tiles<T, kPixels, 1>(variant.tiles[0], std::make_integer_sequence<int, kSingle>());
  fill_tiles<T, kPixels, 2>(variant.tiles[1], std::make_integer_sequence<int, kDouble>());
  return variant;
}

// Other types than f32 have fewer: each takes time to compile.
#if HWY_TARGET <= HWY_AVX3  // 32 registers
template <class T>
constexpr ConvVariant<T> kVariants[] = {make_variant<T, 7, 4, 2>(1.0), make_variant<T, 4, 7, 3>(1.01),
                                        make_variant<T, 1, 4, 4>(2.0)};
template <>
constexpr ConvVariant<float> kVariants<float>[] = {make_variant<float, 7, 4, 2>(1.0),
                                                   make_variant<float, 4, 7, 3>(1.01),
                                                   make_variant<float, 1, 12, 12>(1.1)};
#else
template <class T>
constexpr ConvVariant<T> kVariants[] = {make_variant<T, 2, 6, 3>(1.0), make_variant<T, 1, 6, 4>(1.3)};
template <>
constexpr ConvVariant<float> kVariants<float>[] = {make_variant<float, 2, 6, 3>(1.0),
                                                   make_variant<float, 1, 12, 6>(1.01)};
#endif

// Of strips that copy the edges, or all that a band reads.
template <class T>
constexpr int64_t kStripBytes = (kIsHalf<T> ? 192 : 512) << 10;
// Vectors of a tile.
constexpr int64_t kMaxConvSums = 28;
constexpr int64_t kSmallWeights = 512 << 10, kSmallBand = 128 << 10, kLargeBand = 1 << 20;

template <class T>
const ConvVariant<T>& choose_variant(int64_t out_w) {
  const ConvVariant<T>* best = &kVariants<T>[0];
  double least = 0;
  for (const ConvVariant<T>& v : kVariants<T>) {
    const double cost = v.cost * static_cast<double>(ceil_div(out_w, v.pixels) * v.pixels);
    if (&v == &kVariants<T>[0] || cost < least) best = &v, least = cost;
  }
  return *best;
}

template <class T>
int64_t panels_per_group(const ConvShape& s) {
  return ceil_div(s.out_c / s.groups, kPanelOf<T>);
}

inline int64_t taps(const ConvShape& s) {
  return s.kernel_h * s.kernel_w * (s.in_c / s.groups);
}

template <class T>
int64_t packed_group_elements(const ConvShape& s) {
  return round_up(s.out_c / s.groups, kLanesOf<T>) * taps(s);
}

template <class T>
void pack_panel(const ConvShape& s, const ConvWeights<T>& w, int64_t out_first, int64_t cols, int64_t width,
                T* packed) {
  const WeightColumns<T> columns(w, out_first, cols);
  const int64_t in_c = s.in_c / s.groups, plane = s.kernel_h * s.kernel_w;
  int64_t done = 0;
  if constexpr (std::is_same_v<T, float>) {
    const bool in_order = w.in_stride == plane && w.row_stride == s.kernel_w && w.column_stride == 1;
    for (; in_order && columns.is_regular() && taps(s) >= 4 && done + kLanesOf<T> <= cols;
         done += kLanesOf<T>)
      pack_channel_lanes(columns, done, in_c, plane, packed, width);
    if (columns.are_side_by_side() && plane == 1) {
      for (; done + kLanesOf<T> <= cols; done += kLanesOf<T>) {
        for (int64_t ic = 0; ic < in_c; ++ic)
          hn::StoreU(columns.side_by_side(done, ic * w.in_stride), TagOf<T>(), packed + ic * width + done);
      }
    }
  }
  if (done == width) return;
  for (int64_t ic = 0; ic < in_c; ++ic) {
    for (int64_t kh = 0; kh < s.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
        T* to = packed + ((kh * s.kernel_w + kw) * in_c + ic) * width;
        const int64_t offset = ic * w.in_stride + kh * w.row_stride + kw * w.column_stride;
        for (int64_t o = done; o < cols; ++o) to[o] = T(columns.at(o, offset));
        for (int64_t o = cols; o < width; ++o) to[o] = T();
      }
    }
  }
}

template <class T>
size_t packed_bytes(const ConvShape& s) {
  const int64_t elements = checked_mul(round_up(s.out_c / s.groups, kLanesOf<T>),
                                       checked_mul(checked_mul(s.kernel_h, s.kernel_w), s.in_c / s.groups));
  return static_cast<size_t>(round_up(checked_mul(checked_mul(elements, s.groups), sizeof(T)), 64));
}

template <class T>
void pack(const ConvShape& s, const ConvWeights<T>& weights, T* packed, int threads) {
  const int64_t out_c = s.out_c / s.groups, panels = panels_per_group<T>(s);
  parallel_for(threads, s.groups * panels, [&](int64_t task) {
    const int64_t g = task / panels, first = task % panels * kPanelOf<T>;
    const int64_t cols = std::min(kPanelOf<T>, out_c - first);
    const int64_t width = cols <= kLanesOf<T> ? kLanesOf<T> : kPanelOf<T>;
    pack_panel<T>(s, weights, g * out_c + first, cols, width,
                  packed + g * packed_group_elements<T>(s) + first * taps(s));
    hwy::FlushStream();
  });
}

template <class T>
ConvScratch scratch_need(const ConvShape& s, int64_t pad_bottom, int64_t pad_right) {
  ConvScratch need;
  int64_t widest = 0, reach = 0;
  for (const ConvVariant<T>& v : kVariants<T>) {
    widest = std::max(widest, kIsHalf<T> ? copied_pixels_bound(s, v.pixels, pad_right)
                                         : strip_pixels_bound(s, v.pixels, pad_right));
    reach = std::max(reach, conv_reach(s, v.pixels));
  }
  const auto bytes = [&](int64_t pixels) {
    return round_up(checked_mul(checked_mul(pixels, s.in_c), sizeof(LaneOf<T>)), 64);
  };
  if (s.pad_top > 0 || pad_bottom > 0) need.base_bytes = bytes(reach);
  need.bytes_per_row = bytes(widest);
  if (kIsHalf<T>) need.bytes_per_pixel = checked_mul(s.in_c, sizeof(LaneOf<T>));
  const int64_t least =
      checked_mul(conv_extent(s.kernel_h, s.dilation_h), kIsHalf<T> ? bytes(reach) : need.bytes_per_row);
  need.limit_bytes = checked_add(need.base_bytes, std::max(kStripBytes<T>, least));
  return need;
}

// One convolution on its way: the cut, and what every tile has in common.
template <class T>
class Conv {
  using W = LaneOf<T>;

 public:
  Conv(const ConvShape& shape, const T* x, const T* packed, T* y, const ConvEpilogue<T>& epilogue,
       int64_t strip_bytes, int threads)
      : s_(shape),
        variant_(choose_variant<T>(shape.out_w)),
        split_(split_rows(shape, variant_.pixels, kIsHalf<T>)),
        x_(x),
        packed_(packed),
        y_(y),
        epilogue_(epilogue) {
    const bool contiguous = s_.groups == 1 && (s_.dilation_w == 1 || s_.kernel_w == 1);
    common_.in_rows = s_.in_h;
    common_.in_columns = s_.in_w;
    common_.kernel_h = s_.kernel_h;
    common_.dilation_h = s_.dilation_h;
    common_.dilation_w = s_.dilation_w;
    common_.stride_w = s_.stride_w;
    common_.segments = contiguous ? 1 : s_.kernel_w;
    common_.segment_stride = s_.dilation_w * s_.in_c;
    common_.segment_length = contiguous ? s_.kernel_w * s_.in_c : s_.in_c / s_.groups;
    common_.pixel_stride = s_.stride_w * s_.in_c;
    common_.out_stride = s_.out_pixel_stride;
    const ActivationKind kind = epilogue.activation.kind;
    common_.clamp = kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
    common_.low = kind == ActivationKind::kClip ? epilogue.activation.a : 0;
    common_.high = kind == ActivationKind::kClip ? epilogue.activation.b : HUGE_VALF;
    finish_ = kIsHalf<T> || (kind != ActivationKind::kNone && !common_.clamp);
    strip_row_ = (split_.left_pixels + split_.right_pixels) * s_.in_c;
    cut(strip_bytes, threads);
  }

  int64_t tasks() const { return s_.batch * bands_ * chunks_; }

  // Tasks [first, last) on one thread.
  void work(int64_t first, int64_t last, W* zeros, W* strips) const {
    int64_t copied = -1;
    for (int64_t task = first; task < last; ++task) {
      const int64_t chunk = task % chunks_, band = task / chunks_ % bands_, image = task / chunks_ / bands_;
      Band b{image, 0, 0, 0, 0, 0, zeros, strips};
      set_groups(band, b);
      if (b.first == b.last) continue;
      b.first_row = std::max<int64_t>(0, b.first / split_.per_row * s_.stride_h - s_.pad_top);
      b.end_row = std::min(s_.in_h, (b.last - 1) / split_.per_row * s_.stride_h - s_.pad_top +
                                        (s_.kernel_h - 1) * s_.dilation_h + 1);
      if (copied != task / chunks_) copy_strips(b);
      copied = task / chunks_;
      const int64_t panels = s_.groups * panels_per_group<T>(s_);
      // What this thread has not seen yet comes from memory.
      const int64_t unseen = task - first < chunks_ ? panels * (chunk + 1) / chunks_ : 0;
      for (int64_t p = panels * chunk / chunks_; p < panels * (chunk + 1) / chunks_; ++p)
        run_panel(b, p, p + 1 < unseen);
    }
  }

 private:
  struct Band {
    int64_t image;
    int64_t first, last;         // groups, counted row by row
    int64_t first_row, end_row;  // input rows in the strips
    int64_t skipped;  // input columns before those in the strips, where these copy all that is read
    const W* zeros;
    W* strips;
  };

  void set_groups(int64_t band, Band& b) const {
    const int64_t groups = s_.out_h * split_.per_row;
    if (columns_ > 1) {  // a part of one row
      const int64_t row = band / columns_ * split_.per_row, part = band % columns_;
      b.first = row + split_.per_row * part / columns_;
      b.last = row + split_.per_row * (part + 1) / columns_;
      b.skipped = (b.first - row) * split_.pixels * s_.stride_w;
    } else if (bands_are_rows_) {
      b.first = s_.out_h * band / bands_ * split_.per_row;
      b.last = s_.out_h * (band + 1) / bands_ * split_.per_row;
    } else {
      b.first = groups * band / bands_;
      b.last = groups * (band + 1) / bands_;
    }
  }

  // Bands small enough that their input and output stay in the second-level cache while all weights pass by,
  // larger if the weights do not stay there themselves; and that their strips fit the scratch.
  void cut(int64_t strip_bytes, int threads) {
    if constexpr (kIsHalf<T>) {
      if (cut_columns(strip_bytes, threads)) return;
    }
    const auto kElement = static_cast<int64_t>(sizeof(W));
    const int64_t row_bytes = (s_.in_w * s_.in_c * s_.stride_h + s_.out_w * s_.out_c) * kElement;
    const int64_t weight_bytes = packed_group_elements<T>(s_) * s_.groups * static_cast<int64_t>(sizeof(T));
    const int64_t band_bytes = weight_bytes > kSmallWeights ? kLargeBand : kSmallBand;
    int64_t rows = s_.out_h;
    if (strip_row_ > 0) {
      const int64_t held = strip_bytes / (strip_row_ * kElement);
      const int64_t extent = (s_.kernel_h - 1) * s_.dilation_h + 1;
      rows = std::clamp<int64_t>(held >= s_.in_h ? rows : (held - extent) / s_.stride_h + 1, 1, rows);
    }
    rows = std::clamp<int64_t>(band_bytes / std::max<int64_t>(1, row_bytes), 1, rows);
    bands_ = ceil_div(s_.out_h, rows);
    bands_are_rows_ = s_.out_h > 1;
    if (s_.out_h == 1 && !kIsHalf<T>)
      bands_ = std::clamp<int64_t>(ceil_div(row_bytes, band_bytes), 1, split_.per_row);
    if (threads > 1) {
      const int64_t most = bands_are_rows_ ? s_.out_h : split_.per_row;
      if (!fits_channels_better(most, threads)) bands_ = std::min(most, round_up_to(bands_, threads));
      cut_channels(threads);
    }
  }
  // Of a single band: a small map's few rows come out uneven, while every thread reads only its own weights
  // if the channels are shared out.
  bool fits_channels_better(int64_t rows, int threads) const {
    const int64_t panels = s_.groups * panels_per_group<T>(s_);
    return s_.batch == 1 && bands_ == 1 && panels >= threads &&
           ceil_div(panels, threads) * rows < ceil_div(rows, threads) * panels;
  }
  void cut_channels(int threads) {
    chunks_ =
        std::clamp<int64_t>(ceil_div(4 * threads, s_.batch * bands_), 1, s_.groups * panels_per_group<T>(s_));
  }

  // Parts of single rows, where the rows that the kernel reaches do not fit the strips.
  bool cut_columns(int64_t strip_bytes, int threads) {
    const int64_t extent = (s_.kernel_h - 1) * s_.dilation_h + 1;
    if (s_.in_h == 0 || s_.in_c == 0) return false;
    const int64_t held = strip_bytes / static_cast<int64_t>(sizeof(W)) / std::min(extent, s_.in_h) / s_.in_c;
    const int64_t wanted = s_.out_h == 1 ? ceil_div(split_.per_row, threads) : split_.per_row;
    if (wanted == split_.per_row && conv_reach(s_, wanted * split_.pixels) <= held) return false;
    const int64_t spare = held - conv_reach(s_, 1);
    const int64_t fit = std::max<int64_t>(1, (spare / s_.stride_w + 1) / split_.pixels);
    columns_ = ceil_div(split_.per_row, std::min(fit, wanted));
    strip_row_ = conv_reach(s_, ceil_div(split_.per_row, columns_) * split_.pixels) * s_.in_c;
    bands_ = s_.out_h * columns_;
    if (threads > 1) cut_channels(threads);
    return true;
  }
  static int64_t round_up_to(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

  void copy_strips(const Band& b) const {
    const int64_t left_pixels = columns_ > 1 ? strip_row_ / s_.in_c : split_.left_pixels;
    for (int64_t row = b.first_row; row < b.end_row; ++row) {
      const T* from = x_ + (b.image * s_.in_h + row) * s_.in_w * s_.in_c;
      W* to = b.strips + (row - b.first_row) * strip_row_;
      copy_strip(from, b.skipped - s_.pad_left, left_pixels, to);
      const int64_t right = split_.end_direct * split_.pixels * s_.stride_w - s_.pad_left;
      copy_strip(from, right, split_.right_pixels, to + left_pixels * s_.in_c);
    }
  }

  // Columns [first, first + count) of a row of the image, zeros outside it.
  void copy_strip(const T* row, int64_t first, int64_t count, W* to) const {
    const int64_t begin = std::clamp<int64_t>(-first, 0, count);
    const int64_t end = std::clamp<int64_t>(s_.in_w - first, begin, count);
    std::fill(to, to + begin * s_.in_c, W{0});
    if (end > begin)
      copy_elements(row + (first + begin) * s_.in_c, to + begin * s_.in_c, (end - begin) * s_.in_c);
    std::fill(to + end * s_.in_c, to + count * s_.in_c, W{0});
  }
  static void copy_elements(const T* from, W* to, int64_t count) {
    if constexpr (kIsHalf<T>) {
      int64_t i = 0;
      for (; i + kLanesOf<T> <= count; i += kLanesOf<T>)
        store_all(TagOf<T>(), load_all(TagOf<T>(), from + i), to + i);
      if (i < count) store_lanes(load_lanes(from + i, count - i), to + i, count - i);
    } else {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(W));
    }
  }

  // First channel of a panel within its group.
  static int64_t first_of(int64_t panel, const ConvShape& s) {
    return panel % panels_per_group<T>(s) * kPanelOf<T>;
  }
  const T* weights_of(int64_t panel) const {
    return packed_ + panel / panels_per_group<T>(s_) * packed_group_elements<T>(s_) +
           first_of(panel, s_) * taps(s_);
  }

  void run_panel(const Band& b, int64_t panel, bool fetches_next) const {
    const int64_t out_c = s_.out_c / s_.groups;
    const int64_t g = panel / panels_per_group<T>(s_), first = first_of(panel, s_);
    const int64_t channel = g * out_c + first;
    ConvTile<T> tile = common_;
    tile.zeros = b.zeros;
    tile.cols = std::min(kPanelOf<T>, out_c - first);
    tile.weights = weights_of(panel);
    tile.bias = epilogue_.bias == nullptr ? nullptr : epilogue_.bias + channel;
    const int vecs = tile.cols <= kLanesOf<T> ? 0 : 1;
    HWY_ALIGN W sums[kIsHalf<T> ? kMaxConvSums * kLanesOf<T> : 1];
    tile.detour = sums;
    if (fetches_next) {
      tile.prefetch = weights_of(panel + 1);
      tile.prefetch_step = taps(s_) * kFetched / static_cast<int64_t>(sizeof(T));
      const int64_t width = out_c - first_of(panel + 1, s_) <= kLanesOf<T> ? kLanesOf<T> : kPanelOf<T>;
      tile.prefetching = width * static_cast<int64_t>(sizeof(T)) / kFetched;
    }
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
      const int64_t fetched = std::min(tile.prefetching, tile.repeats);
      tile.prefetch += fetched * tile.prefetch_step;
      tile.prefetching -= fetched;
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
      if constexpr (!kIsHalf<T>) image_ = conv.x_ + b.image * s.in_h * s.in_w * s.in_c + in_channel;
      left_ = b.strips + in_channel;
      skipped_ = b.skipped;
      right_ = left_ + split.left_pixels * s.in_c;
      out_ = b.image * s.out_image_stride + channel;
      start_row();
    }

    void take(ConvGroup<T>& group) {
      const ConvShape& s = conv_.s_;
      const ConvSplit& split = conv_.split_;
      const int64_t x = column_ * split.pixels;
      const bool left = split.is_left(column_), right = split.is_right(column_);
      const int64_t skipped = left    ? skipped_
                              : right ? split.end_direct * split.pixels * s.stride_w
                                      : s.pad_left;
      group.origin = (left ? left_ : right ? right_ : image_) + (x * s.stride_w - skipped) * s.in_c;
      group.row_stride = left || right ? conv_.strip_row_ : s.in_w * s.in_c;
      group.first_row = left || right ? first_row_ : 0;
      group.row = in_row_;
      group.column = x * s.stride_w - s.pad_left;
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
    const W *image_ = nullptr, *left_, *right_;
    int64_t skipped_, out_, in_row_;
    T* out_row_;
    const T* addend_row_;
  };

  // Activations too large to repeat in every kernel, and all that comes before rounding to 16 bits, while the
  // tile is still in the first-level cache.
  void finish(const ConvTile<T>& tile, int64_t groups) const {
    with_activation(TagOf<T>(), epilogue_.activation, [&](auto activation) HWY_ATTR {
      // Pixels without a gap between them are one row. Few channels by themselves would leave lanes idle, and
      // wait each for the last: a load beside a masked store that is under way does not pass it.
      const bool dense = tile.cols == tile.out_stride;
      T* row = nullptr;
      int64_t length = 0;
      for (int64_t repeat = 0; repeat < tile.repeats; ++repeat) {
        for (int64_t g = 0; g < groups; ++g) {
          if constexpr (kIsHalf<T>) {
            finish_sums(tile, repeat, groups, g, activation);
            continue;
          }
          T* out = tile.groups[g].out + repeat * tile.out_step;
          if (!dense) {
            activate_rows<T>(out, tile.groups[g].pixels, tile.out_stride, tile.cols, activation);
            continue;
          }
          if (out != row + length) {
            activate_rows<T>(row, 1, 0, length, activation);
            row = out, length = 0;
          }
          length += tile.groups[g].pixels * tile.cols;
        }
      }
      activate_rows<T>(row, 1, 0, length, activation);
    });
  }

  // Of 16 bits, from the detour.
  template <class Function>
  void finish_sums(const ConvTile<T>& tile, int64_t repeat, int64_t groups, int64_t g,
                   const Function& activation) const {
    const int64_t width = tile.cols <= kLanesOf<T> ? kLanesOf<T> : kPanelOf<T>;
    const ConvGroup<T>& group = tile.groups[g];
    for (int64_t pixel = 0; pixel < group.pixels; ++pixel) {
      const int64_t at = repeat * tile.out_step + pixel * tile.out_stride;
      for (int64_t col = 0; col < tile.cols; col += kLanesOf<T>) {
        const int64_t lanes = tile.cols - col;
        VecOf<T> y =
            hn::Load(TagOf<T>(), tile.detour + ((repeat * groups + g) * split_.pixels + pixel) * width + col);
        if (group.addend != nullptr) y = hn::Add(y, load_lanes(group.addend + at + col, lanes));
        store_lanes(activation(y), group.out + at + col, lanes);
      }
    }
  }

  const ConvShape& s_;
  const ConvVariant<T>& variant_;
  const ConvSplit split_;
  const T* x_;
  const T* packed_;
  T* y_;
  const ConvEpilogue<T>& epilogue_;
  ConvTile<T> common_;
  bool finish_ = false;
  int64_t strip_row_ = 0;  // elements
  int64_t bands_ = 1, chunks_ = 1;
  int64_t columns_ = 1;  // bands of one row
  bool bands_are_rows_ = false;
};

template <class T>
void run(const ConvShape& shape, const T* x, const void* packed, T* y, const ConvEpilogue<T>& epilogue,
         const ConvScratch& need, int64_t scratch_per_thread, std::byte* scratch, int threads) {
  const Conv<T> job(shape, x, static_cast<const T*>(packed), y, epilogue,
                    scratch_per_thread - need.base_bytes, threads);
  const int64_t tasks = job.tasks();
  const auto workers = static_cast<int>(std::min<int64_t>(threads, tasks));
  parallel_for(workers, workers, [&](int64_t worker) {
    std::byte* own = scratch + worker * scratch_per_thread;
    std::memset(own, 0, static_cast<size_t>(need.base_bytes));
    job.work(tasks * worker / workers, tasks * (worker + 1) / workers, reinterpret_cast<LaneOf<T>*>(own),
             reinterpret_cast<LaneOf<T>*>(own + need.base_bytes));
  });
}

template <class T>
const ConvFunctions<T>* conv_table() {
  static constexpr ConvFunctions<T> kTable = {&packed_bytes<T>, &pack<T>, &scratch_need<T>, &run<T>};
  return &kTable;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
