// Samples an image of any number of spatial dimensions at positions given by a grid.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

struct SampleAttrs {
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;
};

constexpr size_t kX = 0, kGrid = 1;
constexpr TypeSet kMovable = kNumericTypes | kBoolType |
                             types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128);

const void* attrs(AttrContext& c) {
  auto* a = c.make<SampleAttrs>();
  const bool old = c.opset() < 20;
  const std::string_view mode = c.text("mode", old ? "bilinear" : "linear");
  if (mode == "nearest") {
    a->mode = SampleMode::kNearest;
  } else if (mode == (old ? "bicubic" : "cubic")) {
    a->mode = SampleMode::kCubic;
  } else if (mode != (old ? "bilinear" : "linear")) {
    c.reject("attribute 'mode': '{}' is not known in opset {}", mode, c.opset());
  }
  const std::string_view padding = c.text("padding_mode", "zeros");
  if (padding == "border") {
    a->padding = SamplePadding::kBorder;
  } else if (padding == "reflection") {
    a->padding = SamplePadding::kReflection;
  } else if (padding != "zeros") {
    c.reject("attribute 'padding_mode': expected zeros, border or reflection, found '{}'", padding);
  }
  a->align_corners = c.integer("align_corners", 0) != 0;
  return a;
}

int64_t taps_along(SampleMode mode) {
  return mode == SampleMode::kNearest ? 1 : mode == SampleMode::kLinear ? 2 : 4;
}

constexpr int64_t kMaxTaps = 256;

void infer(InferContext& c) {
  const auto& a = c.attrs<SampleAttrs>();
  c.expect_type(kX, kMovable);
  c.expect_type(kGrid, kFloatTypes);
  if (c.type(kX) == ElementType::kString && a.mode != SampleMode::kNearest)
    c.reject("strings can only be sampled with mode nearest");
  const size_t most = c.opset() < 20 ? 4 : 2 + kMaxSpatial;
  c.expect_rank(kX, c.opset() < 20 ? 4 : 3, most);
  c.expect_rank(kGrid, 3, most);
  if (!c.ranked(kX) || !c.ranked(kGrid)) return c.set_unranked_output(0, c.type(kX));
  const size_t space = c.rank(kX) - 2;
  c.expect_rank(kGrid, space + 2, space + 2);
  if (std::pow(taps_along(a.mode), space) > kMaxTaps)
    fail(ErrorCode::kNotImplemented, "{}: {} spatial dimensions in this mode", c.node().label(), space);
  unify(c, c.dims(kGrid).back(), Dim(static_cast<int64_t>(space)));
  std::vector<Dim> dims(c.dims(kGrid).begin(), c.dims(kGrid).end() - 1);
  dims[0] = unify(c, c.dims(kX)[0], dims[0]);
  dims.insert(dims.begin() + 1, c.dims(kX)[1]);
  c.set_output(0, c.type(kX), dims);
}

// ---- positions -----------------------------------------------------------------------------------

template <typename F>
struct Axis {
  int64_t size = 1;
  F low = 0, high = 0;  // borders that reflection mirrors at
};

// Mirrors at both borders until the position is between them.
template <typename F>
F reflect(F x, const Axis<F>& axis) {
  const F range = axis.high - axis.low;
  if (x >= axis.low && x <= axis.high) return x;
  if (!(range > 0) || !std::isfinite(x)) return axis.low;
  const F distance = x < axis.low ? axis.low - x : x - axis.high;
  const F times = std::floor(distance / range);
  const F rest = distance - times * range;
  const bool from_low = (std::fmod(times, F{2}) == 0) == (x < axis.low);
  return from_low ? axis.low + rest : axis.high - rest;
}

// The element that index `at` means, or -1 for none.
template <typename F>
int64_t element_of(F at, SamplePadding padding, const Axis<F>& axis) {
  const F last = static_cast<F>(axis.size - 1);
  if (at >= 0 && at <= last) return static_cast<int64_t>(at);
  if (padding == SamplePadding::kZeros || axis.size == 0) return -1;
  if (padding == SamplePadding::kReflection) at = std::trunc(reflect(at, axis));
  return at >= 0 ? static_cast<int64_t>(std::min(at, last)) : 0;
}

template <typename F>
void cubic_weights(F t, F* w) {
  constexpr F kAlpha = F(-0.75);
  const auto near = [](F x) { return ((kAlpha + 2) * x - (kAlpha + 3)) * x * x + 1; };
  const auto far = [](F x) { return ((kAlpha * x - 5 * kAlpha) * x + 8 * kAlpha) * x - 4 * kAlpha; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = near(1 - t), w[3] = far(2 - t);
}

// Elements and weights along one axis for a normalized coordinate.
template <typename F>
void axis_taps(const SampleAttrs& a, const Axis<F>& axis, F coordinate, int64_t* elements, F* weights) {
  const F size = static_cast<F>(axis.size);
  F at = a.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  if (std::isnan(at)) at = -1;
  if (a.mode == SampleMode::kNearest) at = std::nearbyint(at);
  if (at < axis.low || at > axis.high) {
    if (a.padding == SamplePadding::kBorder) at = std::clamp(at, F{0}, std::max(size - 1, F{0}));
    if (a.padding == SamplePadding::kReflection) at = reflect(at, axis);
  }
  if (a.mode == SampleMode::kNearest) {
    elements[0] = element_of(at, a.padding, axis);
    weights[0] = 1;
    return;
  }
  const F floor = std::floor(at), t = at - floor;
  if (a.mode == SampleMode::kLinear) {
    weights[0] = 1 - t, weights[1] = t;
  } else {
    cubic_weights(t, weights);
  }
  const int64_t count = taps_along(a.mode);
  const F first = a.mode == SampleMode::kLinear ? floor : floor - 1;
  for (int64_t i = 0; i < count; ++i) elements[i] = element_of(first + static_cast<F>(i), a.padding, axis);
  if (!std::isfinite(t)) std::fill_n(weights, count, F{0});
}

// The taps of a position: offsets into a plane and weights; those outside have offset -1.
template <typename F>
void position_taps(const SampleAttrs& a, const Axis<F>* axes, size_t space, const F* coordinates,
                   int64_t* offsets, F* weights) {
  int64_t count = 1;
  offsets[0] = 0, weights[0] = 1;
  const int64_t along = taps_along(a.mode);
  for (size_t d = 0; d < space; ++d) {
    int64_t elements[4];
    F factors[4];
    axis_taps(a, axes[d], coordinates[space - 1 - d], elements, factors);
    for (int64_t i = count; i-- > 0;) {  // from behind: the list grows in place
      const int64_t offset = offsets[i];
      const F weight = weights[i];
      for (int64_t k = along; k-- > 0;) {
        const bool outside = offset < 0 || elements[k] < 0;
        offsets[i * along + k] = outside ? -1 : offset * axes[d].size + elements[k];
        weights[i * along + k] = weight * factors[k];
      }
    }
    count *= along;
  }
}

// ---- sampling ------------------------------------------------------------------------------------

template <typename T>
struct Blend {  // what weighted sums of T are computed in
  using type = std::conditional_t<std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) >= 4),
                                  double, float>;
};
template <typename T>
struct Blend<std::complex<T>> {
  using type = std::complex<T>;
};

template <typename T, typename A>
T blended(A sum) {
  if constexpr (std::is_same_v<T, bool>) {
    return sum != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return cast_to_integer<T>(static_cast<double>(sum));
  } else if constexpr (std::is_same_v<T, A>) {
    return sum;
  } else {
    return narrowed<T>(sum);
  }
}

template <typename T, typename F>
T sample(const T* plane, const int64_t* offsets, const F* weights, int64_t taps) {
  if (taps == 1) return offsets[0] < 0 ? T{} : plane[offsets[0]];
  if constexpr (std::is_same_v<T, StringRef>) {
    return {};
  } else {
    using A = typename Blend<T>::type;
    A sum{};
    for (int64_t i = 0; i < taps; ++i) {
      if (offsets[i] < 0) continue;
      if constexpr (std::is_same_v<A, std::complex<float>> || std::is_same_v<A, std::complex<double>>) {
        sum += plane[offsets[i]] * static_cast<typename A::value_type>(weights[i]);
      } else {
        sum += static_cast<A>(load_element(plane[offsets[i]])) * static_cast<A>(weights[i]);
      }
    }
    return blended<T>(sum);
  }
}

constexpr int64_t kTapBuffer = 512;

// T moves or blends; F is what positions are computed in.
template <typename T, typename F>
void run_typed(const RunContext& c) {
  const auto& a = c.attrs<SampleAttrs>();
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  const size_t space = x.rank() - 2;
  Axis<F> axes[kMaxSpatial];
  int64_t taps = 1;
  for (size_t d = 0; d < space; ++d) {
    axes[d].size = x.dims[d + 2];
    axes[d].low = a.align_corners ? F{0} : F(-0.5);
    axes[d].high = static_cast<F>(x.dims[d + 2]) - (a.align_corners ? F{1} : F(0.5));
    taps *= taps_along(a.mode);
  }
  const int64_t channels = x.dims[1], in = count_of(x.dims.subspan(2)), out = count_of(y.dims.subspan(2));
  const int64_t block = std::min<int64_t>(kTapBuffer / taps, 64), blocks = (out + block - 1) / block;
  kernels::parallel_for(y.elements() < 4096 ? 1 : c.threads, y.dims[0] * blocks, [&](int64_t task) {
    const int64_t n = task / blocks, start = task % blocks * block, count = std::min(block, out - start);
    int64_t offsets[kTapBuffer];
    F weights[kTapBuffer], coordinates[kMaxSpatial];
    const auto length = static_cast<int64_t>(space);
    for (int64_t i = 0; i < count; ++i) {
      read_floats(c.inputs[kGrid], (n * out + start + i) * length, length, coordinates);
      position_taps(a, axes, space, coordinates, offsets + i * taps, weights + i * taps);
    }
    for (int64_t k = 0; k < channels; ++k) {
      const T* plane = x.as<T>() + (n * channels + k) * in;
      T* to = y.as<T>() + (n * channels + k) * out + start;
      for (int64_t i = 0; i < count; ++i) to[i] = sample(plane, offsets + i * taps, weights + i * taps, taps);
    }
  });
}

template <typename F>
void run_positions(const RunContext& c) {
  switch (c.inputs[kX].type) {
    case ElementType::kString:
      return run_typed<StringRef, F>(c);
    case ElementType::kBool:
      return run_typed<bool, F>(c);
    case ElementType::kComplex64:
      return run_typed<std::complex<float>, F>(c);
    case ElementType::kComplex128:
      return run_typed<std::complex<double>, F>(c);
    default:
      visit_numeric(c.inputs[kX].type, [&](auto tag) { run_typed<typename decltype(tag)::type, F>(c); });
  }
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  if (c.inputs[kGrid].type == ElementType::kDouble) return run_positions<double>(c);
  run_positions<float>(c);
}

Cost cost(const NodeContext& c) {
  const double taps = std::pow(taps_along(c.attrs<SampleAttrs>().mode), c.rank(kX) - 2);
  const double operations = 4 * taps * static_cast<double>(product(c.output(0).type.dims).value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_grid_sample = {
    .name = "GridSample",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
