// ConvWeightGradient(X, dY): the gradient of Conv's weights, (O, I / group, kernel...). kernel_shape must be
// given.
//
// A product of matrices for each group: dY transposed, (O, pixels), times the patches of X that each pixel
// saw, (pixels, taps * I). Patches are written straight into GEMM's format, a chunk of pixels at a time, and
// chunks add up. Where every channel has its own kernel, products of channels are summed instead. Kernels of
// 3x3 may go by Winograd's way (the attribute `winograd`), on channels-last images of float. All is computed
// on channels-last images; others are copied, one at a time.
#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/patches.h"
#include "kernels/winograd_gradient.h"
#include "ops/channels_last.h"
#include "ops/conv_common.h"
#include "ops/float_blocks.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGradient = 1;

// Tiles are multiplied in blocks of the same size, but for one, for at most `channels` output channels, whose
// sums are held.
struct WinogradGradientChoice {
  kernels::ConvShape shape;
  int64_t tiles = 0, blocks = 1, channels = 0;
  int64_t zeros_at = 0, x_at = 0, dy_at = 0, sums_at = 0, gemm_at = 0;  // offsets in scratch
};

struct WeightGradientChoice {
  bool depthwise = false, direct = false;  // direct: sums are made in dW itself
  int64_t out_c = 0, in_c = 0;             // of a group
  int64_t taps = 1, chunk = 0;             // pixels
  int64_t images = 1;                      // at a time
  int64_t x_at = 0, dy_at = 0, wide_at = 0, patches_at = 0, sums_at = 0, gemm_at = 0;  // offsets in scratch
  const Window* window = nullptr;
  const WinogradGradientChoice* winograd = nullptr;

  int64_t columns() const { return taps * in_c; }
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  if (a->window.kernel.empty()) c.reject("attribute 'kernel_shape' is missing");
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  if (!c.ranked(kX) || !c.ranked(kGradient)) return c.set_unranked_output(0, c.type(kX));
  const size_t rank = c.rank(kX);
  check_window(c, a.window, rank);
  c.expect_rank(kGradient, rank, rank);
  const Dim images = c.dims(kX)[0], gradients = c.dims(kGradient)[0];
  if (images.is_constant() && gradients.is_constant() && !(images == gradients))
    c.reject("expected {} images of dY, found {}", images.value(), gradients.value());
  const size_t channel = channel_axis(a.window, rank);
  const Dim in = c.dims(kX)[channel], out = c.dims(kGradient)[channel];
  for (Dim channels : {in, out}) {
    if (channels.is_constant() && channels.value() % a.groups != 0)
      c.reject("{} channels do not divide into {} groups", channels.value(), a.groups);
  }
  std::vector<Dim> w{out, floor_div(in, Dim(a.groups))};
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    const Dim expected = window_output(a.window, i, c.dims(kX)[axis], a.window.kernel[i], false);
    const Dim found = c.dims(kGradient)[axis];
    if (expected.is_constant() && found.is_constant() && !(expected == found))
      c.reject("dY has shape {}, which does not belong to X of shape {}", to_string(c.dims(kGradient)),
               to_string(c.dims(kX)));
    w.push_back(a.window.kernel[i]);
  }
  c.set_output(0, c.type(kX), w);
}

// Pixels whose patches are made at once: enough that the sums are seldom read and written, few enough that
// they stay in a cache.
int64_t chunk_of(int64_t pixels, int64_t columns) {
  constexpr int64_t kPatchElements = 1 << 20, kLeast = 64, kMost = 768;
  const int64_t most = std::clamp(kPatchElements / columns, kLeast, kMost);
  const int64_t chunks = std::max<int64_t>(1, ceil_div(pixels, most));
  return ceil_div(pixels, chunks);
}

// While sizes are not known, a bound.
Dim gemm_bytes(const WeightGradientChoice& w, bool wide, int threads) {
  const kernels::GemmShape shape{w.out_c, w.chunk, w.columns()};
  return static_cast<int64_t>(wide ? kernels::gemm_scratch_bytes<double>(shape, 1, 2, threads)
                                   : kernels::gemm_scratch_bytes<float>(shape, 1, 2, threads));
}

kernels::ConvShape shape_of(const Window& window, int64_t in_c, int64_t out_c) {
  kernels::ConvShape s;
  s.batch = window.batch, s.in_c = in_c, s.out_c = out_c, s.kernel_h = s.kernel_w = 3;
  s.in_h = window.in[0], s.in_w = window.in[1], s.out_h = window.out[0], s.out_w = window.out[1];
  s.pad_top = window.begin[0], s.pad_left = window.begin[1];
  return s;
}

bool goes_by_winograd(const SelectContext& c, const ConvAttrs& a, std::span<const int64_t> w) {
  const auto all = [](std::span<const int64_t> values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
  };
  return a.winograd == kernels::WinogradForm::kTwo && c.type(kX) == ElementType::kFloat &&
         a.window.channels_last && a.groups == 1 && w.size() == 4 && all(w.subspan(2), 3) &&
         all(a.window.strides, 1) && all(a.window.dilations, 1);
}

// Sums of a few megabytes, and enough tiles that they are seldom read and written.
const WinogradGradientChoice* select_winograd(SelectContext& c, std::span<const int64_t> w) {
  constexpr int64_t kMostTiles = 128, kSumElements = 1 << 20, kLeastChannels = 32;
  constexpr int64_t kPoints = kernels::kWinogradGradientPoints;
  const auto& a = c.attrs<ConvAttrs>();
  auto* choice = c.make<WinogradGradientChoice>();
  const int64_t in_c = w[1];
  choice->channels = std::min(w[0], std::max(kSumElements / kPoints / in_c / 16 * 16, kLeastChannels));
  int64_t most = kMostTiles;  // of a block
  if (c.is_concrete()) {
    choice->shape = shape_of(
        make_window(a.window, *constant_dims(c.input(kX)), *constant_dims(c.input(kGradient)), w.subspan(2)),
        in_c, w[0]);
    choice->tiles = kernels::winograd_gradient_tiles(choice->shape);
    choice->blocks = std::max<int64_t>(1, ceil_div(choice->tiles, kMostTiles));
    most = ceil_div(choice->tiles, choice->blocks);
  }
  const auto floats = [&](int64_t count) { return c.scratch(Dim(checked_mul(count, sizeof(float)))); };
  const auto matrices = [&](int64_t channels) {
    return checked_mul(kPoints, kernels::winograd_gradient_stride(most, channels));
  };
  choice->zeros_at = floats(std::max(in_c, choice->channels));
  choice->x_at = floats(matrices(in_c));
  choice->dy_at = floats(matrices(choice->channels));
  choice->sums_at = floats(checked_mul(kPoints, checked_mul(choice->channels, in_c)));
  const kernels::GemmShape product{choice->channels, most, in_c};
  choice->gemm_at =
      c.scratch(static_cast<int64_t>(kernels::gemm_scratch_bytes<float>(product, 1, 2, c.threads)));
  return choice;
}

const void* select(SelectContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  auto* choice = c.make<WeightGradientChoice>();
  if (!c.output(0).is_concrete()) return choice;
  const auto w = *constant_dims(c.output(0));
  if (goes_by_winograd(c, a, w)) {
    choice->winograd = select_winograd(c, w);
    return choice;
  }
  const bool wide = c.type(kX) == ElementType::kDouble, half = element_bits(c.type(kX)) == 16;
  const int64_t width = wide ? sizeof(double) : sizeof(float);
  for (size_t i = 2; i < w.size(); ++i) choice->taps = checked_mul(choice->taps, w[i]);
  choice->out_c = w[0] / a.groups, choice->in_c = w[1];
  choice->depthwise = a.groups > 1 && choice->in_c == 1 && choice->out_c == 1;
  choice->direct = !half && choice->taps == 1 && !choice->depthwise;
  const Dim batch = c.dims(kX)[0], x_image = product(c.dims(kX).subspan(1)),
            dy_image = product(c.dims(kGradient).subspan(1));
  int64_t pixels = 0;
  if (c.is_concrete()) {
    choice->window = c.make<Window>(make_window(a.window, *constant_dims(c.input(kX)),
                                                *constant_dims(c.input(kGradient)), a.window.kernel));
    pixels = volume(choice->window->rank, choice->window->out);
    choice->images = a.window.channels_last ? batch.value() : 1;
    pixels = checked_mul(pixels, choice->images);
  }
  if (!a.window.channels_last) {
    const int64_t bytes = half ? 2 : width;
    choice->x_at = c.scratch(x_image * Dim(bytes));
    choice->dy_at = c.scratch(dy_image * Dim(bytes));
  }
  if (!choice->direct) choice->sums_at = c.scratch(product(c.output(0).type.dims) * Dim(width));
  if (choice->depthwise) return choice;
  choice->chunk = chunk_of(c.is_concrete() ? pixels : int64_t{1} << 30, choice->columns());
  const int64_t chunk = choice->chunk;
  if (half) choice->wide_at = c.scratch(Dim(chunk * w[0] * width));
  choice->patches_at =
      c.scratch(static_cast<int64_t>(wide ? kernels::packed_b_bytes<double>(chunk, choice->columns())
                                          : kernels::packed_b_bytes<float>(chunk, choice->columns())));
  choice->gemm_at = c.scratch(gemm_bytes(*choice, wide, c.threads));
  return choice;
}

// Calls f(tap, first, last, offset) for taps of one row of outputs, at the position `at` but for the last
// dimension: outputs [first, last) of [begin, end) meet the image; `offset` is the element of X that output 0
// of the row would see, at channel 0.
struct RowTaps {
  const Window& w;
  const SpatialStrides& in;
  template <typename F>
  void for_each(const Spatial& at, int64_t begin, int64_t end, F&& f) const {
    const size_t last = w.rank - 1;
    Spatial tap{};
    int64_t number = 0;
    do {
      int64_t offset = 0;
      bool inside = true;
      for (size_t i = 0; i < last; ++i) {
        const int64_t place = at[i] * w.stride[i] - w.begin[i] + tap[i] * w.dilation[i];
        inside &= place >= 0 && place < w.in[i];
        offset += place * in.spatial[i];
      }
      const int64_t shift = tap[last] * w.dilation[last] - w.begin[last];
      offset += shift * in.spatial[last];
      int64_t from = shift >= 0 ? 0 : ceil_div(-shift, w.stride[last]);
      int64_t to = shift >= w.in[last] ? 0 : (w.in[last] - 1 - shift) / w.stride[last] + 1;
      from = std::clamp(from, begin, end), to = inside ? std::clamp(to, from, end) : from;
      f(number++, from, to, offset);
    } while (next_position(w.rank, w.kernel, tap));
  }
};

template <typename T>
class WeightGradient {
 public:
  using W = kernels::LaneOf<T>;
  explicit WeightGradient(const RunContext& c)
      : c_(c),
        choice_(c.choice<WeightGradientChoice>()),
        w_(*choice_.window),
        groups_(c.attrs<ConvAttrs>().groups),
        in_(strides_of(w_.rank, choice_.in_c * groups_, w_.in, true)),
        row_(w_.out[w_.rank - 1]),
        out_pixels_(volume(w_.rank, w_.out)) {
    sums_ = choice_.direct ? reinterpret_cast<W*>(c.outputs[0].data) : c.scratch_as<W>(choice_.sums_at);
  }

  void run() {
    std::fill_n(sums_, c_.outputs[0].elements(), W{0});
    const T *x = c_.inputs[kX].as<T>(), *dy = c_.inputs[kGradient].as<T>();
    const int64_t in_pixels = volume(w_.rank, w_.in), in_c = choice_.in_c * groups_,
                  out_c = choice_.out_c * groups_;
    if (w_.channels_last) {
      add_images(x, dy);
    } else {
      T *x_copy = c_.scratch_as<T>(choice_.x_at), *dy_copy = c_.scratch_as<T>(choice_.dy_at);
      for (int64_t image = 0; image < w_.batch; ++image) {
        to_channels_last(1, in_c, in_pixels, x + image * in_pixels * in_c, x_copy, c_.threads);
        to_channels_last(1, out_c, out_pixels_, dy + image * out_pixels_ * out_c, dy_copy, c_.threads);
        add_images(x_copy, dy_copy);
      }
    }
    if (!choice_.direct) write();
  }

 private:
  void add_images(const T* x, const T* dy) {
    if (choice_.depthwise) return add_depthwise(x, dy);
    const int64_t pixels = choice_.images * out_pixels_, out_c = choice_.out_c * groups_;
    for (int64_t first = 0; first < pixels; first += choice_.chunk) {
      const int64_t count = std::min(choice_.chunk, pixels - first);
      const W* left = nullptr;
      if constexpr (kernels::kIsHalf<T>) {
        W* wide = c_.scratch_as<W>(choice_.wide_at);
        kernels::widen(dy + first * out_c, wide, count * out_c);
        left = wide;
      } else {
        left = dy + first * out_c;
      }
      for (int64_t group = 0; group < groups_; ++group) {
        write_patches(x + group * choice_.in_c, first, count);
        multiply(left + group * choice_.out_c, count, sums_ + group * choice_.out_c * choice_.columns());
      }
    }
  }

  void multiply(const W* left, int64_t count, W* sums) const {
    const int64_t columns = choice_.columns();
    kernels::GemmEpilogue<W> epilogue;
    epilogue.addend = sums, epilogue.addend_stride = columns;
    kernels::gemm_packed_as<W>({choice_.out_c, count, columns}, {left, 1, choice_.out_c * groups_},
                               c_.scratch + choice_.patches_at, {sums, columns}, epilogue,
                               c_.scratch + choice_.gemm_at, c_.threads);
  }

  // The patches of pixels [first, first + count), one row of the matrix each, in panels of columns.
  void write_patches(const T* x, int64_t first, int64_t count) const {
    W* patches = c_.scratch_as<W>(choice_.patches_at);
    const int64_t columns = choice_.columns(), panel = kernels::packed_b_format<W>(), lanes = panel / 2;
    if (columns % lanes != 0) {
      const int64_t start = columns / panel * panel;
      std::fill(patches + start * count, patches + (columns + lanes - 1) / lanes * lanes * count, W{0});
    }
    const int64_t first_row = first / row_, rows = (first + count - 1) / row_ - first_row + 1;
    kernels::parallel_for(c_.threads, rows, [&](int64_t i) {
      const int64_t row = first_row + i;
      const int64_t begin = std::max(first, row * row_) - row * row_;
      const int64_t end = std::min(first + count, (row + 1) * row_) - row * row_;
      write_row(x, row, begin, end, count, patches, row * row_ - first);
    });
  }

  // Outputs [begin, end) of a row of outputs; output j is row `to + j` of the matrix of `count` rows.
  void write_row(const T* x, int64_t row, int64_t begin, int64_t end, int64_t count, W* patches,
                 int64_t to) const {
    const int64_t columns = choice_.columns(), panel = kernels::packed_b_format<W>(), lanes = panel / 2;
    const size_t last = w_.rank - 1;
    const int64_t step = w_.stride[last] * in_.spatial[last];
    Spatial at{};
    for (size_t i = last; i-- > 0; row /= w_.out[i]) at[i] = row % w_.out[i];
    x += row * in_.batch;
    RowTaps{w_, in_}.for_each(at, begin, end, [&](int64_t tap, int64_t from, int64_t until, int64_t offset) {
      for (int64_t column = tap * choice_.in_c, stop = column + choice_.in_c; column < stop;) {
        const int64_t start = column / panel * panel, width = columns - start <= lanes ? lanes : panel;
        const int64_t length = std::min(stop, start + panel) - column;
        W* place = patches + start * count + to * width + column - start;
        for (int64_t j = begin; j < from; ++j) std::fill_n(place + j * width, length, W{0});
        for (int64_t j = until; j < end; ++j) std::fill_n(place + j * width, length, W{0});
        if (from < until)
          kernels::copy_runs(x + offset + from * step + column - tap * choice_.in_c, step,
                             place + from * width, width, length, until - from);
        column += length;
      }
    });
  }

  // Sums lie as (taps, channels).
  void add_depthwise(const T* x, const T* dy) const {
    constexpr int64_t kChannels = 64;
    const int64_t blocks = ceil_div(groups_, kChannels), rows = choice_.images * out_pixels_ / row_;
    const size_t last = w_.rank - 1;
    const int64_t step = w_.stride[last] * in_.spatial[last];
    kernels::parallel_for(c_.threads, blocks, [&](int64_t block) {
      const int64_t channel = block * kChannels, width = std::min(kChannels, groups_ - channel);
      for (int64_t row = 0; row < rows; ++row) {
        Spatial at{};
        int64_t image = row;
        for (size_t i = last; i-- > 0; image /= w_.out[i]) at[i] = image % w_.out[i];
        const T *from = x + image * in_.batch + channel, *gradient = dy + row * row_ * groups_ + channel;
        RowTaps{w_, in_}.for_each(
            at, 0, row_, [&](int64_t tap, int64_t first, int64_t until, int64_t offset) {
              if (first < until)
                kernels::add_channel_products(gradient + first * groups_, groups_,
                                              from + offset + first * step, step, width, until - first,
                                              sums_ + tap * groups_ + channel);
            });
      }
    });
  }

  // From (O, taps, I), or (taps, channels), to (O, I, taps).
  void write() const {
    T* to = c_.outputs[0].as<T>();
    const int64_t out_c = choice_.out_c * groups_, in_c = choice_.in_c, taps = choice_.taps;
    const int64_t tap_stride = choice_.depthwise ? groups_ : in_c;
    const int64_t out_stride = choice_.depthwise ? 1 : in_c * taps;
    kernels::parallel_for(c_.threads, out_c, [&](int64_t o) {
      const W* from = sums_ + o * out_stride;
      T* row = to + o * in_c * taps;
      for (int64_t i = 0; i < in_c; ++i) {
        for (int64_t tap = 0; tap < taps; ++tap)
          row[i * taps + tap] = narrowed<T>(from[tap * tap_stride + i]);
      }
    });
  }

  const RunContext& c_;
  const WeightGradientChoice& choice_;
  const Window& w_;
  const int64_t groups_;
  const SpatialStrides in_;
  const int64_t row_, out_pixels_;
  W* sums_;
};

void run_winograd(const RunContext& c, const WinogradGradientChoice& choice) {
  constexpr int64_t kPoints = kernels::kWinogradGradientPoints;
  const kernels::ConvShape& s = choice.shape;
  const float *x = c.inputs[kX].as<float>(), *dy = c.inputs[kGradient].as<float>();
  const auto part = [&](int64_t at) { return c.scratch_as<float>(at); };
  float *zeros = part(choice.zeros_at), *sums = part(choice.sums_at);
  float *transformed_x = part(choice.x_at), *transformed_dy = part(choice.dy_at);
  std::fill_n(zeros, std::max(s.in_c, choice.channels), 0.0f);
  for (int64_t channel = 0; channel < s.out_c; channel += choice.channels) {
    const int64_t channels = std::min(choice.channels, s.out_c - channel), matrix = channels * s.in_c;
    for (int64_t block = 0; block < choice.blocks; ++block) {
      const int64_t first = choice.tiles * block / choice.blocks;
      const int64_t count = choice.tiles * (block + 1) / choice.blocks - first;
      if (channel == 0 || choice.blocks > 1)
        kernels::winograd_gradient_x(s, x, first, count, zeros, transformed_x, c.threads);
      kernels::winograd_gradient_dy(s, dy, first, count, channel, channels, zeros, transformed_dy, c.threads);
      const int64_t x_stride = kernels::winograd_gradient_stride(count, s.in_c);
      const int64_t dy_stride = kernels::winograd_gradient_stride(count, channels);
      for (int64_t point = 0; point < kPoints; ++point) {
        float* to = sums + point * matrix;
        kernels::GemmEpilogue<> epilogue;
        if (block > 0) epilogue.addend = to, epilogue.addend_stride = s.in_c;
        kernels::gemm_packed({channels, count, s.in_c}, {transformed_dy + point * dy_stride, 1, channels},
                             transformed_x + point * x_stride, {to, s.in_c}, epilogue,
                             c.scratch + choice.gemm_at, c.threads);
      }
    }
    kernels::winograd_gradient_weights(channels, s.in_c, sums,
                                       c.outputs[0].as<float>() + channel * s.in_c * 9, c.threads);
  }
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const auto& choice = c.choice<WeightGradientChoice>();
  visit_float(c.inputs[kX].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (c.inputs[kX].elements() == 0 || c.inputs[kGradient].elements() == 0)
      return static_cast<void>(std::fill_n(c.outputs[0].as<T>(), c.outputs[0].elements(), T{}));
    if (choice.winograd != nullptr) return run_winograd(c, *choice.winograd);
    WeightGradient<T>(c).run();
  });
}

Cost cost(const NodeContext& c) {
  const auto w = constant_dims(c.output(0)), dy = constant_dims(c.input(kGradient));
  if (!w || !dy) return {};
  int64_t operations = 2;
  for (int64_t d : *dy) operations = checked_mul(operations, d);
  for (size_t i = 1; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  return {operations, tensor_bytes(c)};
}

void layout(LayoutContext& c) {
  if (c.attrs<ConvAttrs>().window.channels_last) return;
  c.moved({kX, kGradient});
  c.keep_output(0);
  c.changes().set("channels_last", int64_t{1});
}

}  // namespace

extern const OpDef op_conv_weight_gradient = {
    .domain = kPlimsollDomain,
    .name = "ConvWeightGradient",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .layout = layout,
};

}  // namespace plimsoll
