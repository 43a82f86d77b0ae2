// Deformable convolution: the input is sampled where the offsets say, into columns that a matrix product with
// the weights turns into a tile of the output.
#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

struct DeformAttrs {
  WindowAttrs window;
  int64_t groups = 1, offset_groups = 1;
};

constexpr size_t kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;
constexpr int64_t kTile = 128;  // positions of the output

const void* attrs(AttrContext& c) {
  auto* a = c.make<DeformAttrs>();
  read_window_lists(c, a->window);
  a->groups = c.integer("group", 1);
  a->offset_groups = c.integer("offset_group", 1);
  if (a->groups < 1 || a->offset_groups < 1)
    c.reject("group and offset_group: expected at least 1, found {} and {}", a->groups, a->offset_groups);
  return a;
}

void expect_multiple(const InferContext& c, const char* what, Dim number, int64_t divisor) {
  if (number.is_constant() && number.value() % divisor != 0)
    c.reject("{} {} cannot be divided into {} groups", number.value(), what, divisor);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<DeformAttrs>();
  c.expect_type(kX, kFloatTypes);
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (c.has_input(i)) c.expect_same_type(kX, i);
  }
  if (!c.ranked(kX) || !c.ranked(kW)) return c.set_unranked_output(0, c.type(kX));
  check_window(c, a.window, c.rank(kX));
  c.expect_rank(kW, c.rank(kX), c.rank(kX));
  const auto x = c.dims(kX), w = c.dims(kW);
  unify(c, x[1], w[1] * Dim(a.groups));
  expect_multiple(c, "output channels", w[0], a.groups);
  expect_multiple(c, "input channels", x[1], a.offset_groups);
  std::vector<Dim> y{x[0], w[0]};
  Dim taps = a.offset_groups;
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    if (!a.window.kernel.empty()) unify(c, w[i + 2], Dim(a.window.kernel[i]));
    y.push_back(window_output(a.window, i, x[i + 2], w[i + 2], false));
    taps = taps * w[i + 2];
  }
  std::vector<Dim> offset = y, mask = y;
  offset[1] = taps * Dim(static_cast<int64_t>(x.size() - 2));
  mask[1] = taps;
  expect_dims(c, kOffset, offset);
  expect_dims(c, kBias, {w[0]});
  expect_dims(c, kMask, mask);
  c.set_output(0, c.type(kX), y);
}

// Scratch, in elements of what is computed in: the weights, if they are of a half type, and per thread
// columns [channels of a group * taps, tile], a tile of the output and what the product needs.
struct Layout {
  Dim weights = 0, columns = 0, tile = 0, product = 0;
  Dim per_thread() const { return columns + tile + product; }
};

Dim aligned(Dim count) {
  return ceil_div(count, Dim(16)) * Dim(16);
}

Layout layout_of(const NodeContext& c) {
  const auto& a = c.attrs<DeformAttrs>();
  const auto w = c.dims(kW);
  const Dim depth = product(w.subspan(1)), rows = floor_div(w[0], Dim(a.groups));
  Layout l;
  const ElementType type = c.type(kX);
  if (type == ElementType::kFloat16 || type == ElementType::kBFloat16) l.weights = aligned(product(w));
  l.columns = aligned(depth * Dim(kTile));
  l.tile = aligned(rows * Dim(kTile));
  if (depth.is_constant() && rows.is_constant()) {
    const kernels::GemmShape shape{rows.value(), depth.value(), kTile};
    const bool wide = type == ElementType::kDouble;
    const size_t bytes = wide ? kernels::gemm_dynamic_scratch_bytes<double>(shape, depth.value(), 1, 1)
                              : kernels::gemm_dynamic_scratch_bytes(shape, depth.value(), 1, 1);
    l.product = aligned(Dim(ceil_div(static_cast<int64_t>(bytes), int64_t{wide ? 8 : 4})));
  } else {
    l.product = aligned(depth * Dim(kTile));
  }
  return l;
}

int64_t compute_bytes(ElementType type) {
  return type == ElementType::kDouble ? 8 : 4;
}

const void* select(SelectContext& c) {
  if (!c.ranked(kX) || !c.ranked(kW)) return nullptr;
  const Layout l = layout_of(c);
  c.scratch((l.weights + Dim(c.threads) * l.per_thread()) * Dim(compute_bytes(c.type(kX))));
  return nullptr;
}

struct BoundDeform {
  int64_t weights = 0, columns = 0, tile = 0, per_thread = 0;
};

const void* bind(BindContext& c) {
  const Layout l = layout_of(c);
  auto* b = c.make<BoundDeform>();
  b->weights = l.weights.value(), b->columns = l.columns.value(), b->tile = l.tile.value();
  b->per_thread = l.per_thread().value();
  return b;
}

// ---- run -----------------------------------------------------------------------------------------

constexpr size_t kMaxCorners = 1 << kMaxSpatial;

// A sampling point: up to 2^n neighbours.
template <typename W>
struct Point {
  size_t count = 0;
  int64_t offset[kMaxCorners];
  W weight[kMaxCorners];

  void start(W factor) {
    count = 1;
    offset[0] = 0;
    weight[0] = factor;
  }
  // Adds a dimension; positions outside are 0.
  void extend(W at, int64_t size) {
    if (!(at > W{-1} && at < static_cast<W>(size))) {
      count = 0;
      return;
    }
    const W floor = std::floor(at), t = at - floor;
    const auto low = static_cast<int64_t>(floor);
    const int64_t first = low < 0 ? 1 : 0, last = low + 1 < size && t > 0 ? 1 : 0;  // neighbours inside
    if (first > last) {
      count = 0;
      return;
    }
    const size_t before = count;
    if (first != last) {  // the list doubles: the second half has the upper neighbours
      count = 2 * before;
      for (size_t i = 0; i < before; ++i) {
        offset[before + i] = offset[i] * size + low + 1;
        weight[before + i] = weight[i] * t;
      }
    }
    for (size_t i = 0; i < before; ++i) {
      offset[i] = offset[i] * size + low + first;
      weight[i] *= first == 0 ? 1 - t : t;
    }
  }
};

template <typename T>
class DeformRun {
 public:
  using W = WideType<T>;
  explicit DeformRun(const RunContext& c) : c_(c), a_(c.attrs<DeformAttrs>()), b_(c.bound_as<BoundDeform>()) {
    const TensorView &x = c.inputs[kX], &w = c.inputs[kW], &y = c.outputs[0];
    window_ = make_window(a_.window, x.dims, y.dims, w.dims.subspan(2));
    channels_ = x.dims[1] / a_.groups;
    rows_ = w.dims[0] / a_.groups;
    for (size_t i = 0; i < window_.rank; ++i)
      taps_ *= window_.kernel[i], plane_ *= window_.in[i], positions_ *= window_.out[i];
  }

  void run() {
    if (c_.outputs[0].elements() == 0) return;
    auto* scratch = reinterpret_cast<W*>(c_.scratch);
    weights_ = weights(scratch);
    const int64_t tiles = (positions_ + kTile - 1) / kTile, count = window_.batch * a_.groups * tiles;
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t thread) {
      W* own = scratch + b_.weights + thread * b_.per_thread;
      for (int64_t i = count * thread / c_.threads; i < count * (thread + 1) / c_.threads; ++i)
        run_tile(i / (a_.groups * tiles), i / tiles % a_.groups, i % tiles * kTile, own);
    });
  }

 private:
  const W* weights(W* scratch) {
    const TensorView& w = c_.inputs[kW];
    if constexpr (std::is_same_v<T, W>) return w.as<W>();
    widen(w.as<T>(), scratch, w.elements());
    return scratch;
  }

  void run_tile(int64_t image, int64_t group, int64_t start, W* own) const {
    const int64_t size = std::min(kTile, positions_ - start), depth = channels_ * taps_;
    W *columns = own, *tile = own + b_.columns, *rest = tile + b_.tile;
    fill_columns(image, group, start, size, columns);
    const W* w = weights_ + group * rows_ * depth;
    kernels::gemm_as<W>({rows_, depth, size}, {w, depth, 1}, {columns, kTile, 1}, {tile, kTile}, {}, rest, 1);
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t channel = group * rows_ + r;
      W bias = 0;
      if (c_.has_input(kBias)) widen(c_.inputs[kBias].as<T>() + channel, &bias, 1);
      W* row = tile + r * kTile;
      for (int64_t i = 0; i < size; ++i) row[i] += bias;
      narrow(row, c_.outputs[0].as<T>() + (image * rows_ * a_.groups + channel) * positions_ + start, size);
    }
  }

  // columns[channel, tap, position]: channels that share offsets are sampled together.
  void fill_columns(int64_t image, int64_t group, int64_t start, int64_t size, W* columns) const {
    const int64_t all = channels_ * a_.groups, shared = all / a_.offset_groups;
    const int64_t first = group * channels_, end = first + channels_;
    for (int64_t channel = first; channel < end;) {
      const int64_t offset_group = channel / shared, next = std::min(end, (offset_group + 1) * shared);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        for (int64_t i = 0; i < size; ++i) {
          const Point<W> point = sampling_point(image, offset_group, tap, start + i);
          for (int64_t k = channel; k < next; ++k) {
            const T* x = c_.inputs[kX].as<T>() + (image * all + k) * plane_;
            W sum = 0;
            for (size_t n = 0; n < point.count; ++n)
              sum += static_cast<W>(x[point.offset[n]]) * point.weight[n];
            columns[((k - first) * taps_ + tap) * kTile + i] = sum;
          }
        }
      }
      channel = next;
    }
  }

  Point<W> sampling_point(int64_t image, int64_t offset_group, int64_t tap, int64_t position) const {
    const int64_t number = (image * a_.offset_groups + offset_group) * taps_ + tap;
    W factor = 1;
    if (c_.has_input(kMask))
      factor = static_cast<W>(c_.inputs[kMask].as<T>()[number * positions_ + position]);
    Spatial at{}, step{};
    int64_t rest = position;
    for (size_t d = window_.rank; d-- > 0;) {
      at[d] = rest % window_.out[d];
      step[d] = tap % window_.kernel[d];
      rest /= window_.out[d];
      tap /= window_.kernel[d];
    }
    Point<W> point;
    point.start(factor);
    for (size_t d = 0; d < window_.rank && point.count > 0; ++d) {
      const int64_t plane = number * static_cast<int64_t>(window_.rank) + static_cast<int64_t>(d);
      const W shift = static_cast<W>(c_.inputs[kOffset].as<T>()[plane * positions_ + position]);
      const int64_t base = at[d] * window_.stride[d] - window_.begin[d] + step[d] * window_.dilation[d];
      point.extend(static_cast<W>(base) + shift, window_.in[d]);
    }
    return point;
  }

  const RunContext& c_;
  const DeformAttrs& a_;
  const BoundDeform& b_;
  Window window_;
  int64_t channels_ = 0, rows_ = 0;  // of a group
  int64_t taps_ = 1, plane_ = 1, positions_ = 1;
  const W* weights_ = nullptr;
};

void run(const RunContext& c) {
  visit_float(c.inputs[kX].type, [&](auto tag) { DeformRun<typename decltype(tag)::type>(c).run(); });
}

Cost cost(const NodeContext& c) {
  const double outputs = static_cast<double>(product(c.output(0).type.dims).value());
  const double operations = 2 * outputs * static_cast<double>(product(c.dims(kW).subspan(1)).value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_deform_conv = {
    .name = "DeformConv",
    .inputs = {3, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .bind = bind,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
