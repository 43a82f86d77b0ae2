// Samples an image of any number of spatial dimensions at positions given by a grid.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/grid_positions.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGrid = 1;
constexpr TypeSet kMovable = kNumericTypes | kBoolType |
                             types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128);

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
  if (std::pow(taps_along(a.mode), space) > kMaxSampleTaps)
    fail(ErrorCode::kNotImplemented, "{}: {} spatial dimensions in this mode", c.node().label(), space);
  unify(c, c.dims(kGrid).back(), Dim(static_cast<int64_t>(space)));
  std::vector<Dim> dims(c.dims(kGrid).begin(), c.dims(kGrid).end() - 1);
  dims[0] = unify(c, c.dims(kX)[0], dims[0]);
  dims.insert(dims.begin() + 1, c.dims(kX)[1]);
  c.set_output(0, c.type(kX), dims);
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
  SampleAxis<F> axes[kMaxSpatial];
  set_sample_axes(a, x.dims, axes);
  int64_t taps = 1;
  for (size_t d = 0; d < space; ++d) taps *= taps_along(a.mode);
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

// Positions between four elements of a plane, which most are: a loop without branches over each channel. The
// others go the general way.
class PlaneSampler {
 public:
  PlaneSampler(const SampleAttrs& a, const TensorView& x) : a_(a), height_(x.dims[2]), width_(x.dims[3]) {
    set_sample_axes(a, x.dims, axes_);
  }
  static bool can_sample(const SampleAttrs& a, const TensorView& x) {
    return a.mode == SampleMode::kLinear && x.rank() == 4 && x.dims[2] > 1 && x.dims[3] > 1;
  }

  static constexpr int64_t kBlock = 64;
  void set_positions(const float* grid, int64_t count) {
    count_ = count, odd_ = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float column = element(grid[2 * i], width_), row = element(grid[2 * i + 1], height_);
      const float left = std::floor(column), top = std::floor(row);
      if (left >= 0 && top >= 0 && left < static_cast<float>(width_ - 1) &&
          top < static_cast<float>(height_ - 1)) {
        const float u = column - left, v = row - top;
        first_[i] = static_cast<int64_t>(top) * width_ + static_cast<int64_t>(left);
        weights_[0][i] = (1 - v) * (1 - u), weights_[1][i] = (1 - v) * u;
        weights_[2][i] = v * (1 - u), weights_[3][i] = v * u;
      } else {
        first_[i] = 0;
        for (auto& weight : weights_) weight[i] = 0;
        position_taps(a_, axes_, 2, grid + 2 * i, odd_offsets_ + 4 * odd_, odd_weights_ + 4 * odd_);
        odd_positions_[odd_++] = i;
      }
    }
  }

  void sample_plane(const float* plane, float* y) const {
    const float* below = plane + width_;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t at = first_[i];
      y[i] = plane[at] * weights_[0][i] + plane[at + 1] * weights_[1][i] + below[at] * weights_[2][i] +
             below[at + 1] * weights_[3][i];
    }
    for (int64_t k = 0; k < odd_; ++k)
      y[odd_positions_[k]] = sample(plane, odd_offsets_ + 4 * k, odd_weights_ + 4 * k, 4);
  }

 private:
  float element(float coordinate, int64_t count) const {  // as axis_taps has it
    const auto size = static_cast<float>(count);
    return a_.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  }

  const SampleAttrs& a_;
  const int64_t height_, width_;
  SampleAxis<float> axes_[kMaxSpatial];
  int64_t count_ = 0, odd_ = 0;
  int64_t first_[kBlock], odd_positions_[kBlock], odd_offsets_[4 * kBlock];
  float weights_[4][kBlock], odd_weights_[4 * kBlock];
};

void run_planes(const RunContext& c) {
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  const int64_t channels = x.dims[1], in = count_of(x.dims.subspan(2)), out = count_of(y.dims.subspan(2));
  constexpr int64_t kBlock = PlaneSampler::kBlock;
  const int64_t blocks = (out + kBlock - 1) / kBlock;
  kernels::parallel_for(y.elements() < 4096 ? 1 : c.threads, y.dims[0] * blocks, [&](int64_t task) {
    const int64_t n = task / blocks, start = task % blocks * kBlock, count = std::min(kBlock, out - start);
    PlaneSampler sampler(c.attrs<SampleAttrs>(), x);
    sampler.set_positions(c.inputs[kGrid].as<float>() + (n * out + start) * 2, count);
    for (int64_t k = n * channels; k < (n + 1) * channels; ++k)
      sampler.sample_plane(x.as<float>() + k * in, y.as<float>() + k * out + start);
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
  const bool is_float =
      c.inputs[kX].type == ElementType::kFloat && c.inputs[kGrid].type == ElementType::kFloat;
  if (is_float && PlaneSampler::can_sample(c.attrs<SampleAttrs>(), c.inputs[kX])) return run_planes(c);
  if (c.inputs[kGrid].type == ElementType::kDouble) return run_positions<double>(c);
  run_positions<float>(c);
}

Cost cost(const NodeContext& c) {
  const double taps = std::pow(taps_along(c.attrs<SampleAttrs>().mode), c.rank(kX) - 2);
  const double operations = 4 * taps * static_cast<double>(product(c.output(0).type.dims).value());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

// With names as they were before opset 20: that is what our own operators have.
void gradient(GradientContext& c) {
  const auto& a = c.attrs<SampleAttrs>();
  constexpr std::string_view kModes[] = {"nearest", "bilinear", "bicubic"};
  constexpr std::string_view kPaddings[] = {"zeros", "border", "reflection"};
  const AttributeList attributes = c.attributes()
                                       .set("mode", kModes[static_cast<size_t>(a.mode)])
                                       .set("padding_mode", kPaddings[static_cast<size_t>(a.padding)])
                                       .set("align_corners", int64_t{a.align_corners});
  Edge* const inputs[] = {c.in(kX), c.in(kGrid), c.gradient()};
  const Node* node = c.build.emit(kPlimsollDomain, "GridSampleGradient", inputs, attributes.list(), 2);
  c.set(kX, node->outputs[0]);
  c.set(kGrid, node->outputs[1]);
}

}  // namespace

const void* grid_sample_attrs(AttrContext& c) {
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

extern const OpDef op_grid_sample = {
    .name = "GridSample",
    .inputs = {2, 2},
    .attrs = grid_sample_attrs,
    .infer = infer,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
