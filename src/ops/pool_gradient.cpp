// PoolGradient(dY, shape, X, Y, taps): the gradient of a pooling of X, whose shape (N, C, spatial...) is
// given. `kind` is "average", which needs neither X nor Y, "max", which needs X or the taps that MaxPoolTaps
// names, or "lp", which needs X and Y.
#include <cmath>

#include "kernels/parallel.h"
#include "ops/channels_last.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/pool_common.h"
#include "ops/pool_windows.h"

namespace plimsoll {
namespace {

enum class PoolKind : uint8_t { kAverage, kMax, kLp };

struct PoolGradientAttrs : PoolAttrs {
  PoolKind kind = PoolKind::kAverage;
  float p = 2;
};

constexpr size_t kGradient = 0, kShape = 1, kX = 2, kY = 3, kTaps = 4;

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
  const bool named = a.kind == PoolKind::kMax && c.has_input(kTaps);
  if (named) c.expect_type(kTaps, types(ElementType::kUint8));
  if (a.kind != PoolKind::kAverage && !named && !c.has_input(kX)) c.reject("input {} is missing", kX);
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
  expect_dims(c, kTaps, y);
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
      : c_(c), a_(c.attrs<PoolGradientAttrs>()), windows_(w), dx_(dx) {}

  void run() {
    kernels::parallel_for(c_.threads, windows_.blocks(),
                          [&](int64_t index) { scatter(windows_.block(index)); });
  }

 private:
  using Taps = PoolWindows::Taps;
  using Block = PoolWindows::Block;

  void scatter(const Block& block) const {
    clear(block);
    W dy[kPoolChannels];
    windows_.for_each_window([&](const Taps& t, int64_t place) {
      if (t.inside <= 0) return;
      const int64_t to = block.to + place;
      widen(c_.inputs[kGradient].as<T>() + to, dy, block.width);
      if (a_.kind == PoolKind::kMax) {
        give_to_largest(t, block, to, dy);
      } else if (a_.kind == PoolKind::kAverage) {
        const W share = W{1} / static_cast<W>(a_.count_padding ? t.padded : t.inside);
        for (int64_t i = 0; i < block.width; ++i) dy[i] *= share;
        windows_.for_each_tap(t, [&](int64_t offset) {
          for (int64_t i = 0; i < block.width; ++i) dx_[block.from + offset + i] += dy[i];
        });
      } else {
        give_by_norm(t, block, to, dy);
      }
    });
  }

  void clear(const Block& block) const {
    const Window& w = windows_.w;
    Spatial at{};
    if (volume(w.rank, w.in) == 0) return;
    do {
      int64_t offset = block.from;
      for (size_t i = 0; i < w.rank; ++i) offset += at[i] * windows_.in.spatial[i];
      std::fill_n(dx_ + offset, block.width, W{0});
    } while (next_position(w.rank, w.in, at));
  }

  void give_to_largest(const Taps& t, const Block& block, int64_t to, const W* dy) const {
    TapCount<T> winner[kPoolChannels];
    if (c_.has_input(kTaps)) {
      std::copy_n(c_.inputs[kTaps].as<uint8_t>() + to, block.width, winner);
    } else {
      windows_.find_largest(t, c_.inputs[kX].as<T>() + block.from, block.width, winner);
    }
    TapCount<T> tap = 0;
    windows_.for_each_tap(t, [&](int64_t offset) {
      W* dx = dx_ + block.from + offset;
      for (int64_t i = 0; i < block.width; ++i) dx[i] += winner[i] == tap ? dy[i] : W{0};
      ++tap;
    });
  }

  // sign(x) * (|x| / y) ^ (p - 1)
  void give_by_norm(const Taps& t, const Block& block, int64_t to, const W* dy) const {
    const T* x = c_.inputs[kX].as<T>() + block.from;
    W norms[kPoolChannels], values[kPoolChannels];
    widen(c_.inputs[kY].as<T>() + to, norms, block.width);
    windows_.for_each_tap(t, [&](int64_t offset) {
      widen(x + offset, values, block.width);
      for (int64_t i = 0; i < block.width; ++i) {
        if (values[i] == 0) continue;
        const W power = std::pow(std::fabs(values[i]) / norms[i], static_cast<W>(a_.p - 1));
        dx_[block.from + offset + i] += dy[i] * std::copysign(power, values[i]);
      }
    });
  }

  const RunContext& c_;
  const PoolGradientAttrs& a_;
  const PoolWindows windows_;
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
  c.moved({kGradient, kX, kY, kTaps});
  c.changes().set("channels_last", int64_t{1});
}

}  // namespace

extern const OpDef op_pool_gradient = {
    .domain = kPlimsollDomain,
    .name = "PoolGradient",
    .inputs = {2, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .layout = layout,
};

}  // namespace plimsoll
