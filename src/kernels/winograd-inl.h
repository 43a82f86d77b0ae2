// Winograd's way, once per target: blocks of tiles are transformed, multiplied and transformed back.
#if defined(PLIMSOLL_KERNELS_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_KERNELS_WINOGRAD_INL_H_
#undef PLIMSOLL_KERNELS_WINOGRAD_INL_H_
#else
#define PLIMSOLL_KERNELS_WINOGRAD_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/activation-inl.h"
#include "kernels/conv_functions.h"
#include "kernels/gemm_tile-inl.h"
#include "kernels/parallel.h"
#include "kernels/weight_columns-inl.h"
#include "kernels/winograd_functions.h"
#include "kernels/winograd_transform-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kPanel = kPanelOf<float>;

// Panel by panel of output channels; in each, point by point, a matrix of input channels x panel as GEMM has
// it.
template <int kM, class T>
void pack_winograd(const ConvShape& s, const ConvWeights<T>& w, float* packed, int threads) {
  static_assert(kPanelOf<T> == kPanel);
  constexpr int kPoints = (kM + 2) * (kM + 2);
  const FloatTag d;
  parallel_for(threads, panel_count<float>(s.out_c), [&](int64_t panel) HWY_ATTR {
    const int64_t width = panel_width<float>(s.out_c, panel), first = panel * kPanel;
    const int64_t cols = std::min(width, s.out_c - first), point_stride = s.in_c * width;
    const WeightColumns<T> columns(w, first, cols);
    // The nine taps of a channel lie one behind the other, or from the last to the first.
    const bool turned = w.row_stride == -3 && w.column_stride == -1;
    [[maybe_unused]] const bool in_order =
        columns.is_regular() && (turned || (w.row_stride == 3 && w.column_stride == 1));
    float* to = packed + first * kPoints * s.in_c;
    for (int64_t in = 0; in < s.in_c; ++in, to += width) {
      HWY_ALIGN float taps[9 * kPanel] = {};
      int64_t done = 0;
      if constexpr (std::is_same_v<T, float>) {
        for (; in_order && done + kFloatLanes <= cols; done += kFloatLanes) {
          for (const int64_t tap : {0, 4, 5})
            columns.quads(done, in * w.in_stride + tap - (turned ? 8 : 0), [&](int i, FloatVec v) HWY_ATTR {
              hn::Store(v, d, taps + (turned ? 8 - tap - i : tap + i) * kPanel + done);
            });
        }
      }
      for (; done < cols; ++done) {
        for (int64_t tap = 0; tap < 9; ++tap)
          taps[tap * kPanel + done] =
              columns.at(done, in * w.in_stride + tap / 3 * w.row_stride + tap % 3 * w.column_stride);
      }
      for (int64_t col = 0; col < width; col += kFloatLanes) {
        transform_weights<kM>(
            [&](int i, int j) HWY_ATTR { return hn::Load(d, taps + (i * 3 + j) * kPanel + col); },
            [&](int i, int j, FloatVec v)
                HWY_ATTR { hn::StoreU(v, d, to + (i * (kM + 2) + j) * point_stride + col); });
      }
    }
  });
}

// Where the square of input of a tile begins; what of it and of its output lies in the images.
template <class T>
struct TileSquare {
  int64_t row, column;        // of the first input pixel, may be outside
  const T* origin = nullptr;  // its address, if all are inside
  const T* image = nullptr;
  T* out = nullptr;
  int64_t out_rows = 0, out_columns = 0;
};

template <int kM, class T>
class Winograd {
  static constexpr int kSide = kM + 2, kPoints = kSide * kSide;

 public:
  explicit Winograd(const WinogradJob<T>& job)
      : s_(job.shape), p_(job.plan), job_(job), row_stride_(s_.in_w * s_.in_c) {
    reach_h_ = (kSide - 1) * s_.dilation_h + 1, reach_w_ = (kSide - 1) * s_.dilation_w + 1;
  }

  // Tiles [first, last) of the block that begins with tile `block`, to their place in `input`.
  void transform(int64_t block, int64_t first, int64_t last, const T* zeros, float* input) const {
    for (int64_t t = first; t < last; ++t) {
      const TileSquare<T> square = square_of(t);
      float* to = input + (t - block) * p_.row;
      if (square.origin != nullptr) {
        transform_inner(square.origin, to);
      } else {
        transform_edge(square, zeros, to);
      }
    }
  }

  // One panel of output channels of `tiles` tiles.
  void multiply(int64_t panel, int64_t tiles, const float* input, float* product) const {
    const int64_t width = panel_width<float>(s_.out_c, panel);
    const int64_t most = width == kPanel ? kMaxRows : kMaxVectorRows;
    const TileFunction<float>* functions =
        width == kPanel ? kPanelTiles<float>.data() : kVectorTiles<float>.data();
    const int64_t parts = ceil_div(tiles, most);
    Tile<float> t;
    t.a_stride = p_.row;
    t.k = s_.in_c;
    t.cols = t.c_stride = width;
    t.b = job_.packed + panel * kPanel * kPoints * s_.in_c;
    t.prefetch_step = prefetch_step<float>(width, parts);
    const int64_t fetched = s_.in_c * t.prefetch_step / 4;  // by one part
    for (int64_t point = 0; point < kPoints; ++point, t.b += s_.in_c * width) {
      // Each part fetches its share of the next point's matrix.
      const float* next = t.b + s_.in_c * width;
      for (int64_t part = 0, row = 0; part < parts; ++part) {
        const int64_t rows = tiles / parts + (part < tiles % parts ? 1 : 0);
        t.a = input + point * p_.plane + row * p_.row;
        t.c = product + point * p_.product_plane + row * width;
        t.prefetch = (part + 1) * fetched <= s_.in_c * width ? next + part * fetched : t.b;
        functions[rows - 1](t);
        row += rows;
      }
    }
  }

  // The products of one panel, from tile `first` on, become pixels.
  void finish(int64_t panel, int64_t first, int64_t tiles, const float* product) const {
    const int64_t width = panel_width<float>(s_.out_c, panel);
    for (int64_t t = 0; t < tiles; ++t) {
      const TileSquare<T> square = square_of(first + t);
      for (int64_t col = 0; col < width; col += kFloatLanes) {
        const int64_t channel = panel * kPanel + col;
        HWY_ALIGN float sums[kM * kM * kFloatLanes];
        back(product + t * width + col, sums);
        store(square, channel, sums);
      }
    }
  }

 private:
  TileSquare<T> square_of(int64_t tile) const {
    const int64_t part = tile / (p_.tiles_h * p_.tiles_w), within = tile % (p_.tiles_h * p_.tiles_w);
    const int64_t image = part / (s_.dilation_h * s_.dilation_w);
    const int64_t first_row = part / s_.dilation_w % s_.dilation_h, first_column = part % s_.dilation_w;
    const int64_t out_row = within / p_.tiles_w * kM * s_.dilation_h + first_row;
    const int64_t out_column = within % p_.tiles_w * kM * s_.dilation_w + first_column;
    TileSquare<T> q;
    q.row = out_row - s_.pad_top, q.column = out_column - s_.pad_left;
    q.image = job_.x + image * s_.in_h * row_stride_;
    if (q.row >= 0 && q.column >= 0 && q.row + reach_h_ <= s_.in_h && q.column + reach_w_ <= s_.in_w)
      q.origin = q.image + q.row * row_stride_ + q.column * s_.in_c;
    q.out =
        job_.y + image * s_.out_image_stride + out_row * s_.out_row_stride + out_column * s_.out_pixel_stride;
    // The last tiles of a part may be empty: parts differ by a pixel.
    q.out_rows = std::clamp<int64_t>(ceil_div(s_.out_h - out_row, s_.dilation_h), 0, kM);
    q.out_columns = std::clamp<int64_t>(ceil_div(s_.out_w - out_column, s_.dilation_w), 0, kM);
    return q;
  }

  void transform_inner(const T* origin, float* to) const {
    const FloatTag d;
    const int64_t row = s_.dilation_h * row_stride_, pixel = s_.dilation_w * s_.in_c, plane = p_.plane;
    const auto transform = [&](int64_t c, const auto& lanes) HWY_ATTR {
      transform_input<kM>([&](int i, int j) HWY_ATTR { return lanes.load(origin + i * row + j * pixel + c); },
                          [&](int i, int j, FloatVec v)
                              HWY_ATTR { hn::Store(v, d, to + (i * kSide + j) * plane + c); });
    };
    int64_t c = 0;
    for (; c + kFloatLanes <= s_.in_c; c += kFloatLanes) transform(c, AllLanes<float>());
    if (c < s_.in_c) transform(c, Lanes<float>(s_.in_c - c));
  }

  // Pixels outside the image are zeros.
  void transform_edge(const TileSquare<T>& q, const T* zeros, float* to) const {
    const FloatTag d;
    const T* at[kPoints];
    for (int64_t i = 0; i < kPoints; ++i) {
      const int64_t row = q.row + i / kSide * s_.dilation_h, column = q.column + i % kSide * s_.dilation_w;
      const bool inside = row >= 0 && row < s_.in_h && column >= 0 && column < s_.in_w;
      at[i] = inside ? q.image + row * row_stride_ + column * s_.in_c : zeros;
    }
    const int64_t plane = p_.plane;
    const auto transform = [&](int64_t c, const auto& lanes) HWY_ATTR {
      transform_input<kM>([&](int i, int j) HWY_ATTR { return lanes.load(at[i * kSide + j] + c); },
                          [&](int i, int j, FloatVec v)
                              HWY_ATTR { hn::Store(v, d, to + (i * kSide + j) * plane + c); });
    };
    int64_t c = 0;
    for (; c + kFloatLanes <= s_.in_c; c += kFloatLanes) transform(c, AllLanes<float>());
    if (c < s_.in_c) transform(c, Lanes<float>(s_.in_c - c));
  }

  void back(const float* product, float* sums) const {
    const FloatTag d;
    const int64_t plane = p_.product_plane;
    transform_output<kM>(
        [&](int i, int j) HWY_ATTR { return hn::Load(d, product + (i * kSide + j) * plane); },
        [&](int i, int j, FloatVec v) HWY_ATTR { hn::Store(v, d, sums + (i * kM + j) * kFloatLanes); });
  }

  void store(const TileSquare<T>& q, int64_t channel, const float* sums) const {
    const int64_t count = s_.out_c - channel;
    if (count >= kFloatLanes) return store_pixels(q, channel, sums, AllLanes<float>());
    store_pixels(q, channel, sums, Lanes<float>(count));
  }

  template <class Some>
  void store_pixels(const TileSquare<T>& q, int64_t channel, const float* sums, const Some& lanes) const {
    const FloatTag d;
    const ConvEpilogue<T>& e = job_.epilogue;
    const FloatVec bias = e.bias == nullptr ? hn::Zero(d) : lanes.load(e.bias + channel);
    const T* addend = e.addend == nullptr ? nullptr : e.addend + (q.out - job_.y);
    const int64_t row_step = s_.dilation_h * s_.out_row_stride;
    const int64_t pixel_step = s_.dilation_w * s_.out_pixel_stride;
    with_activation(d, e.activation, [&](auto activation) HWY_ATTR {
      for (int64_t i = 0; i < q.out_rows; ++i) {
        for (int64_t j = 0; j < q.out_columns; ++j) {
          const int64_t at = i * row_step + j * pixel_step + channel;
          FloatVec y = hn::Add(hn::Load(d, sums + (i * kM + j) * kFloatLanes), bias);
          if (addend != nullptr) y = hn::Add(y, lanes.load(addend + at));
          lanes.store(activation(y), q.out + at);
        }
      }
    });
  }

  const ConvShape& s_;
  const WinogradPlan& p_;
  const WinogradJob<T>& job_;
  const int64_t row_stride_;
  int64_t reach_h_ = 0, reach_w_ = 0;  // from a tile's first input pixel to behind its last
};

template <int kM, class T>
void run_winograd(const WinogradJob<T>& job, float* scratch) {
  const WinogradPlan& p = job.plan;
  const Winograd<kM, T> work(job);
  std::fill(scratch, scratch + p.zero_floats, 0.0f);
  const T* zeros = reinterpret_cast<const T*>(scratch);
  float* inputs = scratch + p.zero_floats;
  const auto first_of = [&](int64_t block) { return p.tiles * block / p.blocks; };
  if (!p.shares_block) {
    const int64_t workers = std::min<int64_t>(job.threads, p.blocks);
    float* products = inputs + workers * p.input_floats;
    parallel_for(job.threads, workers, [&](int64_t worker) {
      float *input = inputs + worker * p.input_floats, *product = products + worker * p.product_floats;
      for (int64_t b = p.blocks * worker / workers; b < p.blocks * (worker + 1) / workers; ++b) {
        const int64_t first = first_of(b), last = first_of(b + 1);
        work.transform(first, first, last, zeros, input);
        for (int64_t panel = 0; panel < p.panels; ++panel) {
          work.multiply(panel, last - first, input, product);
          work.finish(panel, first, last - first, product);
        }
      }
    });
    return;
  }
  float* products = inputs + p.input_floats;
  for (int64_t b = 0; b < p.blocks; ++b) {
    const int64_t first = first_of(b), last = first_of(b + 1), threads = job.threads;
    parallel_for(job.threads, threads, [&](int64_t part) {
      work.transform(first, first + (last - first) * part / threads,
                     first + (last - first) * (part + 1) / threads, zeros, inputs);
    });
    parallel_for(job.threads, threads, [&](int64_t part) {
      float* product = products + part * p.product_floats;
      for (int64_t panel = p.panels * part / threads; panel < p.panels * (part + 1) / threads; ++panel) {
        work.multiply(panel, last - first, inputs, product);
        work.finish(panel, first, last - first, product);
      }
    });
  }
}

template <class T>
constexpr WinogradFunctions<T> winograd_functions() {
  return {&pack_winograd<2, T>, &pack_winograd<4, T>, &run_winograd<2, T>, &run_winograd<4, T>};
}

const WinogradTable* winograd_table() {
  static constexpr WinogradTable kTable = {{kFloatLanes, kMaxRows},
                                           winograd_functions<float>(),
                                           winograd_functions<Float16>(),
                                           winograd_functions<BFloat16>()};
  return &kTable;
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
