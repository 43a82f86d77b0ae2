// Opset 17 has the axis as an attribute, opset 20 as an input.
#include <cmath>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/fourier.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct DftAttrs {
  int64_t axis = 1;
  bool axis_is_input = false, inverse = false, onesided = false;
};

constexpr size_t kX = 0, kLength = 1, kAxis = 2;

const void* attrs(AttrContext& c) {
  auto* a = c.make<DftAttrs>();
  a->inverse = c.integer("inverse", 0) != 0;
  a->onesided = c.integer("onesided", 0) != 0;
  if (c.opset() < 20) {
    a->axis = c.integer("axis", 1);
    if (c.node().inputs.size() > 2) c.reject("expected 2 inputs (opset {}), found 3", c.opset());
  } else {
    a->axis = -2;
    a->axis_is_input = c.node().input(kAxis) != nullptr;
  }
  return a;
}

// The axis that the transform runs along; nullopt if only the data tells.
std::optional<size_t> axis_of(const NodeContext& c) {
  const auto& a = c.attrs<DftAttrs>();
  int64_t axis = a.axis;
  if (a.axis_is_input) {
    const auto known = known_scalar(c, kAxis);
    if (!known || !known->is_constant()) return std::nullopt;
    axis = known->value();
  }
  const auto rank = static_cast<int64_t>(c.rank(kX));
  if (axis < -rank || axis >= rank - 1 || axis == -1)
    c.reject("axis {} is not one of the {} before the last", axis, rank - 1);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

// Length of the transform; nullopt if only the data tells.
std::optional<Dim> length_of(const NodeContext& c, size_t axis) {
  const auto& a = c.attrs<DftAttrs>();
  if (c.has_input(kLength)) return known_scalar(c, kLength);
  const Dim size = c.dims(kX)[axis];
  return a.inverse && a.onesided ? (size - 1) * Dim(2) : size;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<DftAttrs>();
  c.expect_type(kX, kFloatTypes);
  expect_scalar(c, kLength, kIndexTypes);
  expect_scalar(c, kAxis, types(ElementType::kInt64));
  c.expect_rank(kX, 2, InferContext::kMaxRank);
  if (!c.ranked(kX)) return c.set_unranked_output(0, c.type(kX));
  const Dim parts = c.dims(kX).back();
  if (parts.is_constant() && parts.value() != 1 && parts.value() != 2)
    c.reject("the last dimension is 1 for real and 2 for complex signals, not {}", parts.value());
  if (a.onesided && !a.inverse && parts == Dim(2)) c.reject("a onesided transform needs a real signal");
  const auto axis = axis_of(c);
  if (!axis) return c.set_output(0, c.type(kX), unknown_dims(c, c.rank(kX)));
  std::vector<Dim> dims(c.dims(kX).begin(), c.dims(kX).end());
  const auto length = length_of(c, *axis);
  const Dim n = length ? expect_length(c, *length) : c.unknown("dft");
  dims[*axis] = a.onesided && !a.inverse ? floor_div(n, Dim(2)) + 1 : n;
  dims.back() = a.onesided && a.inverse ? 1 : 2;
  c.set_output(0, c.type(kX), dims);
}

const void* select(SelectContext& c) {
  if (!c.ranked(kX)) return nullptr;
  const auto axis = axis_of(c);
  const auto length = axis ? length_of(c, *axis) : std::nullopt;
  if (length) c.scratch(fourier_scratch_bytes(*length, c.threads));
  return nullptr;
}

struct BoundDft : BoundFourier {
  size_t axis = 0;
};

const void* bind(BindContext& c) {
  auto* bound = c.make<BoundDft>();
  bound->axis = *axis_of(c);
  bind_fourier(c, *bound, length_of(c, bound->axis)->value(), c.attrs<DftAttrs>().inverse);
  return bound;
}

// ---- run -----------------------------------------------------------------------------------------

// Signals lie `inner` apart, their elements `inner` numbers of one or two parts apart.
struct Signals {
  int64_t outer, inner, in_size, out_size, in_parts, out_parts;
};

template <typename T>
kernels::Complex load(const T* x, int64_t at, int64_t parts) {
  double numbers[2] = {0, 0};
  widen(x + at * parts, numbers, parts);
  return {numbers[0], numbers[1]};
}

// The elements of the signal that count; zeros behind them. A onesided spectrum is mirrored.
template <typename T>
void read_signal(const Signals& s, const T* x, int64_t n, bool mirrored, kernels::Complex* to) {
  const int64_t half = n / 2 + 1;
  const int64_t count = std::min(s.in_size, mirrored ? half : n);
  for (int64_t i = 0; i < count; ++i) to[i] = load(x, i * s.inner, s.in_parts);
  std::fill(to + count, to + n, kernels::Complex{});
  if (!mirrored) return;
  to[0] = to[0].real();
  if (n % 2 == 0) to[n / 2] = to[n / 2].real();
  for (int64_t i = 1; i < (n + 1) / 2; ++i) to[n - i] = std::conj(to[i]);
}

template <typename T>
void write_signal(const Signals& s, const kernels::Complex* from, double scale, T* y) {
  for (int64_t i = 0; i < s.out_size; ++i) {
    T* to = y + i * s.inner * s.out_parts;
    to[0] = narrowed<T>(from[i].real() * scale);
    if (s.out_parts == 2) to[1] = narrowed<T>(from[i].imag() * scale);
  }
}

template <typename T>
void run_typed(const RunContext& c) {
  const auto& a = c.attrs<DftAttrs>();
  const auto& bound = c.bound_as<BoundDft>();
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  const auto middle = x.dims.subspan(bound.axis + 1, x.rank() - bound.axis - 2);
  const Signals s{count_of(x.dims.first(bound.axis)),
                  count_of(middle),
                  x.dims[bound.axis],
                  y.dims[bound.axis],
                  x.dims.back(),
                  y.dims.back()};
  const int64_t n = bound.plan.n, count = s.outer * s.inner;
  const double scale = a.inverse ? 1 / static_cast<double>(n) : 1;
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    auto* signal = reinterpret_cast<kernels::Complex*>(c.scratch) + thread * bound.per_thread;
    for (int64_t i = count * thread / c.threads; i < count * (thread + 1) / c.threads; ++i) {
      const int64_t o = i / s.inner, k = i % s.inner;
      read_signal(s, x.as<T>() + (o * s.in_size * s.inner + k) * s.in_parts, n, a.onesided && a.inverse,
                  signal);
      kernels::fft(bound.plan, signal, signal + n);
      write_signal(s, signal, scale, y.as<T>() + (o * s.out_size * s.inner + k) * s.out_parts);
    }
  });
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  visit_float(c.inputs[kX].type, [&](auto tag) { run_typed<typename decltype(tag)::type>(c); });
}

Cost cost(const NodeContext& c) {
  const double n = static_cast<double>(product(c.output(0).type.dims).value());
  return {static_cast<int64_t>(std::min(5 * n * std::log2(n + 1), 9e18)), tensor_bytes(c)};
}

// The transform is a matrix of complex numbers, of which the adjoint is the inverse transform times its
// length.
void gradient(GradientContext& c) {
  const auto& a = c.attrs<DftAttrs>();
  const auto axis = axis_of(c);
  const auto length = axis ? length_of(c, *axis) : std::nullopt;
  const Dim in = axis ? c.dims(kX)[*axis] : Dim(0);
  if (!length || !length->is_constant() || !in.is_constant() || !c.dims(kX).back().is_constant())
    c.reject("its gradient needs to know the axis and the length");
  if (a.onesided && a.inverse) c.reject("its gradient does not know onesided inverse transforms");
  const int64_t n = length->value(), size = in.value(), place = static_cast<int64_t>(*axis);
  const auto fit = [&](Edge* edge, int64_t from, int64_t to, int64_t at) {
    if (from == to) return edge;
    Edge *start = c.build.integers({int64_t{0}}), *along = c.build.integers({at});
    if (from > to) return c.op("Slice", {edge, start, c.build.integers({to}), along});
    return c.op("Pad", {edge, c.build.integers({0, to - from}), nullptr, along});
  };
  Edge* dy = a.onesided ? fit(c.gradient(), n / 2 + 1, n, place) : c.gradient();
  Edge* dx =
      c.op("DFT", {dy, nullptr, c.build.scalar(place)}, c.attributes().set("inverse", int64_t{!a.inverse}));
  const auto count = static_cast<double>(n);
  dx = c.op("Mul", {dx, c.scalar(a.inverse ? 1 / count : count)});
  dx = fit(dx, n, size, place);
  c.set(kX, fit(dx, 2, c.dims(kX).back().value(), static_cast<int64_t>(c.rank(kX)) - 1));
}

}  // namespace

extern const OpDef op_dft = {
    .name = "DFT",
    .inputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .bind = bind,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
