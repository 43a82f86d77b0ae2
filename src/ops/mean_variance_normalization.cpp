// (x - mean) / (deviation + 1e-9), as the operator's function says; moments over any axes.
#include <array>
#include <cmath>
#include <numeric>

#include "graph/gradient.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/normalization.h"

namespace plimsoll {
namespace {

struct MvnAttrs {
  std::span<const int64_t> axes;
  bool centers_only = false;
};

constexpr int64_t kDefaultAxes[] = {0, 2, 3}, kAllAxes[] = {0, 1, 2, 3};
constexpr double kEpsilon = 1e-9;
constexpr size_t kMaxRank = 32;
constexpr int64_t kStrip = 128;

const void* attrs(AttrContext& c) {
  auto* a = c.make<MvnAttrs>();
  if (c.opset() < 9) {
    a->axes = c.integer("across_channels", 0) != 0 ? std::span<const int64_t>(kAllAxes) : kDefaultAxes;
    a->centers_only = c.integer("normalize_variance", 1) == 0;
    return a;
  }
  a->axes = c.has("axes") ? c.integers("axes") : std::span<const int64_t>(kDefaultAxes);
  return a;
}

void infer(InferContext& c) {
  infer_float_unary(c);
  c.expect_rank(0, 0, kMaxRank);
  if (c.ranked(0)) resolve_axes(c, c.attrs<MvnAttrs>().axes, c.rank(0));
}

void alias(AliasContext& c) {
  c.overwrite(0);  // what belongs together is read whole before it is written
}

// Positions of some dimensions of a row-major tensor, counted through by increment.
struct Axes {
  size_t rank = 0;
  std::array<int64_t, kMaxRank> dims{}, strides{};
  int64_t count = 1;

  void add(int64_t dim, int64_t stride) {
    count *= dim;
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  int64_t offset(int64_t index) const {
    int64_t result = 0;
    for (size_t i = 0; i < rank; ++i) {
      result += index % dims[i] * strides[i];
      index /= dims[i];
    }
    return result;
  }
  template <typename F>
  void for_each(F&& f) const {
    std::array<int64_t, kMaxRank> at{};
    int64_t where = 0;
    for (int64_t n = 0; n < count; ++n) {
      f(where);
      for (size_t i = 0; i < rank; ++i) {
        where += strides[i];
        if (++at[i] < dims[i]) break;
        where -= at[i] * strides[i];
        at[i] = 0;
      }
    }
  }
};

// Innermost first: a run of elements side by side, and around it dimensions that are kept or reduced.
struct Nest {
  bool centers_only = false;
  int64_t run = 1;
  bool run_reduced = true;
  Axes kept, reduced;
};

Nest nest_of(std::span<const int64_t> dims, std::span<const int64_t> axes) {
  bool is_reduced[kMaxRank] = {};
  for (int64_t axis : axes) is_reduced[axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis] = true;
  Nest n;
  size_t next = dims.size();
  while (next > 0 && dims[next - 1] == 1) --next;
  if (next > 0) n.run_reduced = is_reduced[next - 1];
  for (; next > 0 && (dims[next - 1] == 1 || is_reduced[next - 1] == n.run_reduced); --next)
    n.run *= dims[next - 1];
  int64_t stride = n.run;
  for (; next > 0; --next) {
    const int64_t dim = dims[next - 1];
    if (dim != 1) (is_reduced[next - 1] ? n.reduced : n.kept).add(dim, stride);
    stride *= dim;
  }
  return n;
}

// Several sums at a time: one alone would wait for each addition.
class ManySums {
 public:
  // Adds f(value) of each.
  template <typename W, typename F>
  void add(const W* values, int64_t size, F f) {
    int64_t i = 0;
    for (; i + kCount <= size; i += kCount) {
      for (int64_t k = 0; k < kCount; ++k) sums_[k] += f(static_cast<double>(values[i + k]));
    }
    for (; i < size; ++i) sums_[0] += f(static_cast<double>(values[i]));
  }
  double total() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

 private:
  static constexpr int64_t kCount = 8;
  std::array<double, kCount> sums_{};
};

// Everything that shares one mean: runs of contiguous elements.
template <typename T>
void normalize_runs(const Nest& n, const T* x, T* y) {
  const double count = static_cast<double>(n.run * n.reduced.count);
  const auto sum = [&](auto of) {
    ManySums sums;
    n.reduced.for_each([&](int64_t at) {
      for_each_block(x + at, n.run,
                     [&](const auto* wide, int64_t, int64_t size) { sums.add(wide, size, of); });
    });
    return sums.total();
  };
  const double mean = sum([](double value) { return value; }) / count;
  const double squares = sum([mean](double value) { return (value - mean) * (value - mean); });
  const double factor = n.centers_only ? 1 : 1 / (std::sqrt(squares / count) + kEpsilon);
  n.reduced.for_each([&](int64_t at) {
    for_each_block(x + at, n.run, [&](auto* wide, int64_t start, int64_t size) {
      using W = WideType<T>;
      for (int64_t i = 0; i < size; ++i)
        wide[i] = static_cast<W>((static_cast<double>(wide[i]) - mean) * factor);
      narrow(wide, y + at + start, size);
    });
  });
}

// A strip of columns, each with a mean of its own.
template <typename T>
void normalize_strip(const Nest& n, const T* x, T* y, int64_t size) {
  const double count = static_cast<double>(n.reduced.count);
  double block[kStrip], mean[kStrip] = {}, factor[kStrip] = {};
  n.reduced.for_each([&](int64_t at) {
    widen(x + at, block, size);
    for (int64_t i = 0; i < size; ++i) mean[i] += block[i];
  });
  for (int64_t i = 0; i < size; ++i) mean[i] /= count;
  n.reduced.for_each([&](int64_t at) {
    widen(x + at, block, size);
    for (int64_t i = 0; i < size; ++i) factor[i] += (block[i] - mean[i]) * (block[i] - mean[i]);
  });
  for (int64_t i = 0; i < size; ++i)
    factor[i] = n.centers_only ? 1 : 1 / (std::sqrt(factor[i] / count) + kEpsilon);
  n.reduced.for_each([&](int64_t at) {
    widen(x + at, block, size);
    for (int64_t i = 0; i < size; ++i) block[i] = (block[i] - mean[i]) * factor[i];
    narrow(block, y + at, size);
  });
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (y.elements() == 0) return;
  Nest n = nest_of(x.dims, c.attrs<MvnAttrs>().axes);
  n.centers_only = c.attrs<MvnAttrs>().centers_only;
  const int64_t strips = n.run_reduced ? 1 : (n.run + kStrip - 1) / kStrip;
  const int threads = y.elements() < 16384 ? 1 : c.threads;
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(threads, n.kept.count * strips, [&](int64_t task) {
      const int64_t col = task % strips * kStrip;
      const int64_t at = n.kept.offset(task / strips) + col;
      if (n.run_reduced) return normalize_runs(n, x.as<T>() + at, y.as<T>() + at);
      normalize_strip(n, x.as<T>() + at, y.as<T>() + at, std::min(kStrip, n.run - col));
    });
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 8;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

// (dy - mean(dy) - y * mean(dy * y)) / (deviation + 1e-9)
void gradient(GradientContext& c) {
  Edge *y = c.out(0), *dy = c.gradient(), *axes = c.build.integers(c.attrs<MvnAttrs>().axes);
  const auto mean = [&](Edge* edge) { return c.op("ReduceMean", {edge, axes}); };
  if (c.attrs<MvnAttrs>().centers_only) return c.set(0, c.op("Sub", {dy, mean(dy)}));
  Edge* distance = c.op("Sub", {c.in(0), mean(c.in(0))});
  Edge* deviation = c.op("Sqrt", {mean(c.op("Mul", {distance, distance}))});
  Edge* slope = c.op("Mul", {y, mean(c.op("Mul", {dy, y}))});
  Edge* rest = c.op("Sub", {c.op("Sub", {dy, mean(dy)}), slope});
  c.set(0, c.op("Div", {rest, c.op("Add", {deviation, c.scalar(kEpsilon)})}));
}

}  // namespace

extern const OpDef op_mean_variance_normalization = {
    .name = "MeanVarianceNormalization",
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
