// PoolGradient(dY, shape, X, Y): the gradient of a pooling of X, whose shape (N, C, spatial...) is given.
// `kind` is "average", which needs neither X nor Y, "max", which needs X, or "lp", which needs both.
#include <cmath>
#include <limits>

#include "kernels/parallel.h"
#include "ops/channels_last.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/pool_common.h"

namespace plimsoll {
namespace {

enum class PoolKind : uint8_t { kAverage, kMax, kLp };

struct PoolGradientAttrs : PoolAttrs {
  PoolKind kind = PoolKind::kAverage;
  float p = 2;
};

constexpr size_t kGradient = 0, kShape = 1, kX = 2, kY = 3;
constexpr int64_t kChannels = 64;  // at a time

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolGradientAttrs>();
  read_pool(c, *a);
  a->count_padding = c.integer("count_include_pad", 0) != 0;
  a->p = c.real("p", 2.0f);
  const std::string_view kind = c.text("kind");
  if (kind == "max") {
    a->kind = PoolKind::kMax;
  } else if (kind == "lp") {
    a->kind = PoolKind::kLp;
  } else if (kind != "average") {
    c.reject("attribute 'kind': expected average, max or lp, found '{}'", kind);
  }
  return a;
}

// In the gradient's layout; sizes that only the data tells are new symbols.
std::vector<Dim> given_shape(InferContext& c) {
  const WindowAttrs& window = c.attrs<PoolGradientAttrs>().window;
  const size_t rank = c.rank(kGradient);
  const auto shape = c.values(kShape);
  if (shape && shape->size() != rank) c.reject("shape: expected {} sizes, found {}", rank, shape->size());
  std::vector<Dim> x(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t place = i == 0 ? 0 : i == 1 ? channel_axis(window, rank) : spatial_axis(window, i - 2);
    x[place] = shape ? (*shape)[i] : i < 2 ? c.dims(kGradient)[place] : c.unknown("");
  }
  return x;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<PoolGradientAttrs>();
  c.expect_type(kGradient, kFloatTypes);
  c.expect_type(kShape, types(ElementType::kInt64));
  if (a.kind != PoolKind::kAverage && !c.has_input(kX)) c.reject("input {} is missing", kX);
  if (a.kind == PoolKind::kLp && !c.has_input(kY)) c.reject("input {} is missing", kY);
  for (size_t i : {kX, kY}) {
    if (c.has_input(i)) c.expect_same_type(kGradient, i);
  }
  const bool has_x = c.has_input(kX) && c.ranked(kX);
  if (!c.ranked(kGradient) || (c.has_input(kX) && !has_x)) {
    if (has_x) return c.set_output(0, c.type(kGradient), c.dims(kX));
    return c.set_unranked_output(0, c.type(kGradient));
  }
  const size_t rank = c.rank(kGradient);
  check_window(c, a.window, rank);
  const std::vector<Dim> x = has_x ? std::vector<Dim>(c.dims(kX).begin(), c.dims(kX).end()) : given_shape(c);
  c.expect_rank(kGradient, x.size(), x.size());
  std::vector<Dim> y = x;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    y[axis] = window_output(a.window, i, x[axis], a.window.kernel[i], a.ceil_mode);
  }
  expect_dims(c, kGradient, y);
  expect_dims(c, kY, y);
  c.set_output(0, c.type(kGradient), x);
}

// 16 bits are added up in float.
const void* select(SelectContext& c) {
  if (element_bits(c.type(kGradient)) == 16 && c.output(0).type.ranked)
    c.scratch(product(c.output(0).type.dims) * Dim(int64_t{sizeof(float)}));
  return nullptr;
}

template <typename T>
class PoolScatter {
 public:
  using W = WideType<T>;
  PoolScatter(const RunContext& c, const Window& w, W* dx)
      : c_(c),
        a_(c.attrs<PoolGradientAttrs>()),
        w_(w),
        in_(strides_of(w.rank, w.channels, w.in, w.channels_last)),
        out_(strides_of(w.rank, w.channels, w.out, w.channels_last)),
        dx_(dx) {}

  void run() {
    const int64_t width = w_.channels_last ? std::min(kChannels, w_.channels) : 1;
    const int64_t blocks = ceil_div(w_.channels, width);
    kernels::parallel_for(c_.threads, w_.batch * blocks, [&](int64_t task) {
      const int64_t first = task % blocks * width;
      scatter(task / blocks, first, std::min(width, w_.channels - first));
    });
  }

 private:
  struct Taps {
    Spatial start{}, count{};
    int64_t base = 0, inside = 1, padded = 1;
  };

  Taps taps_at(const Spatial& at) const {
    Taps t;
    for (size_t i = 0; i < w_.rank; ++i) {
      const TapRange range = tap_range(w_, i, at[i]);
      const int64_t start = at[i] * w_.stride[i] - w_.begin[i];
      t.count[i] = range.last - range.first;
      t.inside *= t.count[i];
      t.padded *= std::min(w_.kernel[i], ceil_div(w_.in[i] + w_.end[i] - start, w_.dilation[i]));
      t.base += (start + range.first * w_.dilation[i]) * in_.spatial[i];
    }
    return t;
  }

  // Calls f(offset in the image) for every tap inside it.
  template <typename F>
  void for_each_tap(const Taps& t, F&& f) const {
    Spatial tap{};
    do {
      int64_t from = t.base;
      for (size_t i = 0; i < w_.rank; ++i) from += tap[i] * w_.dilation[i] * in_.spatial[i];
      f(from);
    } while (next_position(w_.rank, t.count, tap));
  }

  void scatter(int64_t image, int64_t channel, int64_t width) const {
    const int64_t from = image * in_.batch + channel * in_.channel;
    clear(from, width);
    if (volume(w_.rank, w_.out) == 0) return;
    Spatial at{};
    W dy[kChannels];
    do {
      int64_t to = image * out_.batch + channel * out_.channel;
      for (size_t i = 0; i < w_.rank; ++i) to += at[i] * out_.spatial[i];
      const Taps t = taps_at(at);
      if (t.inside <= 0) continue;
      widen(c_.inputs[kGradient].as<T>() + to, dy, width);
      if (a_.kind == PoolKind::kMax) {
        give_to_largest(t, from, dy, width);
      } else if (a_.kind == PoolKind::kAverage) {
        const W share = W{1} / static_cast<W>(a_.count_padding ? t.padded : t.inside);
        for (int64_t i = 0; i < width; ++i) dy[i] *= share;
        for_each_tap(t, [&](int64_t offset) {
          for (int64_t i = 0; i < width; ++i) dx_[from + offset + i] += dy[i];
        });
      } else {
        give_by_norm(t, from, to, dy, width);
      }
    } while (next_position(w_.rank, w_.out, at));
  }

  void clear(int64_t from, int64_t width) const {
    Spatial at{};
    if (volume(w_.rank, w_.in) == 0) return;
    do {
      int64_t offset = from;
      for (size_t i = 0; i < w_.rank; ++i) offset += at[i] * in_.spatial[i];
      std::fill_n(dx_ + offset, width, W{0});
    } while (next_position(w_.rank, w_.in, at));
  }

  // The first of the largest elements of a window made the output. Taps are counted, not addressed: numbers
  // as wide as the elements make vectors of the loop.
  void give_to_largest(const Taps& t, int64_t from, const W* dy, int64_t width) const {
    using Count = std::conditional_t<sizeof(W) == 4, int32_t, int64_t>;
    const T* x = c_.inputs[kX].as<T>() + from;
    W best[kChannels], values[kChannels];
    Count winner[kChannels];
    std::fill_n(best, width, -std::numeric_limits<W>::infinity());
    std::fill_n(winner, width, Count{0});
    Count tap = 0;
    for_each_tap(t, [&](int64_t offset) {
      widen(x + offset, values, width);
      for (int64_t i = 0; i < width; ++i) {
        const bool wins = values[i] > best[i];
        best[i] = wins ? values[i] : best[i];
        winner[i] = wins ? tap : winner[i];
      }
      ++tap;
    });
    tap = 0;
    for_each_tap(t, [&](int64_t offset) {
      W* to = dx_ + from + offset;
      for (int64_t i = 0; i < width; ++i) to[i] += winner[i] == tap ? dy[i] : W{0};
      ++tap;
    });
  }

  // sign(x) * (|x| / y) ^ (p - 1)
  void give_by_norm(const Taps& t, int64_t from, int64_t to, const W* dy, int64_t width) const {
    const T* x = c_.inputs[kX].as<T>() + from;
    W norms[kChannels], values[kChannels];
    widen(c_.inputs[kY].as<T>() + to, norms, width);
    for_each_tap(t, [&](int64_t offset) {
      widen(x + offset, values, width);
      for (int64_t i = 0; i < width; ++i) {
        if (values[i] == 0) continue;
        const W power = std::pow(std::fabs(values[i]) / norms[i], static_cast<W>(a_.p - 1));
        dx_[from + offset + i] += dy[i] * std::copysign(power, values[i]);
      }
    });
  }

  const RunContext& c_;
  const PoolGradientAttrs& a_;
  const Window& w_;
  const SpatialStrides in_, out_;
  W* dx_;
};

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const WindowAttrs& attrs = c.attrs<PoolGradientAttrs>().window;
  const Window w = make_window(attrs, c.outputs[0].dims, c.inputs[kGradient].dims, attrs.kernel);
  visit_float(c.inputs[kGradient].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* dx = c.outputs[0].as<T>();
    if constexpr (kernels::kIsHalf<T>) {
      float* wide = reinterpret_cast<float*>(c.scratch);
      PoolScatter<T>(c, w, wide).run();
      kernels::narrow(wide, dx, c.outputs[0].elements());
    } else {
      PoolScatter<T>(c, w, dx).run();
    }
  });
}

void layout(LayoutContext& c) {
  if (c.attrs<PoolGradientAttrs>().window.channels_last) return;
  c.moved({kGradient, kX, kY});
  c.changes().set("channels_last", int64_t{1});
}

}  // namespace

extern const OpDef op_pool_gradient = {
    .domain = kPlimsollDomain,
    .name = "PoolGradient",
    .inputs = {2, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .layout = layout,
};

}  // namespace plimsoll
