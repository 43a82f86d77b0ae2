// ResizeGradient(dY, shape, roi, scales, sizes): what Resize and Upsample did to a tensor of that shape,
// transposed. Resampling is linear and goes axis by axis, so its adjoint does too, the last axis first: every
// element of dY is added, by its weights, to the elements that it was made of.
#include <algorithm>
#include <cmath>

#include "graph/gradient.h"
#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "ops/resample_taps.h"

namespace plimsoll {
namespace {

constexpr size_t kShape = 1, kRoi = 2, kScales = 3, kSizes = 4;

template <typename E>
E read_enum(AttrContext& c, std::string_view name, E last) {
  const int64_t value = c.integer(name, 0);
  if (value < 0 || value > static_cast<int64_t>(last))
    c.reject("attribute '{}': expected 0 to {}, found {}", name, static_cast<int64_t>(last), value);
  return static_cast<E>(value);
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<ResampleAttrs>();
  a->mode = read_enum(c, "mode", ResampleAttrs::Mode::kCubic);
  a->coordinates = read_enum(c, "coordinates", ResampleAttrs::Coordinates::kTfCropAndResize);
  a->nearest = read_enum(c, "nearest", ResampleAttrs::Nearest::kOutward);
  a->policy = read_enum(c, "policy", ResampleAttrs::Policy::kNotSmaller);
  a->exclude_outside = c.integer("exclude_outside", 0) != 0;
  a->antialias = c.integer("antialias", 0) != 0;
  a->cubic_a = c.real("cubic_a", -0.75f);
  a->axes = c.integers("axes");
  a->fixed_scales = c.reals("fixed_scales");
  a->roi_input = kRoi, a->scales_input = kScales, a->sizes_input = kSizes;
  return a;
}

void expect_length(InferContext& c, size_t input, size_t expected, const char* what) {
  const auto length = known_length(c, input);
  if (length && *length != expected) c.reject("expected {} {}, found {}", expected, what, *length);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ResampleAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_type(kShape, types(ElementType::kInt64));
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const size_t rank = c.rank(0), named = a.axes.empty() ? rank : a.axes.size();
  resolve_axes(c, a.axes, rank);
  expect_length(c, kShape, rank, "sizes in the shape");
  if (is_given(c, kSizes)) {
    c.expect_type(kSizes, types(ElementType::kInt64));
    expect_length(c, kSizes, named, "sizes");
  } else if (a.fixed_scales.empty()) {
    if (!is_given(c, kScales)) c.reject("neither scales nor sizes are given");
    c.expect_type(kScales, types(ElementType::kFloat));
    expect_length(c, kScales, named, "scales");
  } else if (a.fixed_scales.size() != named) {
    c.reject("expected {} scales, found {}", named, a.fixed_scales.size());
  }
  if (a.coordinates == ResampleAttrs::Coordinates::kTfCropAndResize) {
    if (!is_given(c, kRoi)) c.reject("tf_crop_and_resize needs the input 'roi'");
    c.expect_type(kRoi, kFloatTypes);
    expect_length(c, kRoi, 2 * named, "numbers in roi");
  }
  if (const auto shape = c.values(kShape)) {
    for (Dim d : *shape) {
      if (d.is_constant() && (d.value() < 0 || d.value() > INT32_MAX))
        c.reject("{} elements are too many", d.value());
    }
    return c.set_output(0, c.type(0), *shape);
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(c.unknown(""));
  c.set_output(0, c.type(0), dims);
}

struct Choice {
  std::span<const MovingAxis> axes;
  int64_t taps_at = 0, sums_at = 0;  // offsets in scratch
  std::span<int64_t> between_at;     // what is there after each axis but the last
};

// A file may say anything: what the tables were made for must be what the taps need.
void check_taps(const SelectContext& c, std::span<const MovingAxis> axes) {
  const auto& a = c.attrs<ResampleAttrs>();
  for (const MovingAxis& m : axes) {
    if (!(m.shape.scale > 0) || !std::isfinite(m.shape.scale))
      c.reject("scale {} is not positive", m.shape.scale);
    const double reach = a.antialias ? 4.0 / static_cast<double>(std::min(m.shape.scale, 1.0f)) : 4.0;
    const Dim most = most_taps(a, m.shape.in, m.shape.out);
    if (reach * static_cast<double>(m.shape.out) > 4e18 || tap_count(a, m.shape) * m.shape.out > most.value())
      c.reject("{} elements do not become {} by a scale of {}", m.shape.in, m.shape.out, m.shape.scale);
  }
}

const void* select(SelectContext& c) {
  auto* choice = c.make<Choice>();
  if (!c.ranked(0)) return choice;
  const auto in = c.output(0).type.dims, out = c.dims(0);
  std::vector<size_t> moving;
  choice->taps_at =
      c.scratch(most_entries(c, in, out, [&](size_t axis) { moving.push_back(axis); }) * Dim(8));
  if (c.is_concrete() && !(product(in) == Dim(0)) && !(product(out) == Dim(0))) {
    choice->axes = moving_axes(c, in, out);
    check_taps(c, choice->axes);
    moving.clear();
    for (const MovingAxis& m : choice->axes) moving.push_back(m.axis);
  }
  std::sort(moving.begin(), moving.end());
  const int64_t width = c.type(0) == ElementType::kDouble ? sizeof(double) : sizeof(float);
  std::vector<Dim> dims(out.begin(), out.end());
  choice->between_at = c.array<int64_t>(moving.size());
  for (size_t i = moving.size(); i-- > 0;) {
    dims[moving[i]] = in[moving[i]];
    const bool is_last = i == 0;
    if (!is_last) choice->between_at[i] = c.scratch(product(dims) * Dim(width));
    if (is_last && element_bits(c.type(0)) == 16) choice->sums_at = c.scratch(product(dims) * Dim(width));
  }
  return choice;
}

// [outer, axis.out, inner] to [outer, axis.in, inner].
template <typename S, typename W>
void add_along(const kernels::ResizeAxis& axis, int64_t outer, int64_t inner, const S* from, W* to,
               int threads) {
  kernels::parallel_for(outer * axis.out * inner < 16384 ? 1 : threads, outer, [&](int64_t o) {
    const S* source = from + o * axis.out * inner;
    W* sums = to + o * axis.in * inner;
    std::fill_n(sums, axis.in * inner, W{0});
    for (int64_t t = 0; t < axis.taps; ++t) {
      for (int64_t i = 0; i < axis.out; ++i) {
        const int32_t index = axis.index[t * axis.out + i];
        const auto weight = static_cast<W>(axis.weight[t * axis.out + i]);
        if (index == kOutside || weight == 0) continue;
        W* sum = sums + index * inner;
        const S* row = source + i * inner;
        for (int64_t k = 0; k < inner; ++k) sum[k] += weight * static_cast<W>(load_element(row[k]));
      }
    }
  });
}

template <typename T>
void run_typed(const RunContext& c, const Resampling& r) {
  using W = kernels::LaneOf<T>;
  const auto& choice = c.choice<Choice>();
  const TensorView &dy = c.inputs[0], &dx = c.outputs[0];
  W* result = nullptr;
  if constexpr (kernels::kIsHalf<T>) {
    result = c.scratch_as<W>(choice.sums_at);
  } else {
    result = dx.as<T>();
  }
  const W* from = nullptr;  // null: dY itself
  for (size_t i = r.count; i-- > 0;) {
    const ScaledAxis& s = r.axes[i];
    // Axes before this one are still those of dY, those behind it already those of dX.
    const int64_t outer = count_of(dy.dims.first(s.axis)), inner = stride_of(dx.dims, s.axis);
    W* to = i == 0 ? result : c.scratch_as<W>(choice.between_at[i]);
    if (from == nullptr) {
      add_along(s.taps, outer, inner, dy.as<T>(), to, c.threads);
    } else {
      add_along(s.taps, outer, inner, from, to, c.threads);
    }
    from = to;
  }
  if constexpr (kernels::kIsHalf<T>) kernels::narrow(result, dx.as<T>(), dx.elements());
}

void run(const RunContext& c) {
  const TensorView &dy = c.inputs[0], &dx = c.outputs[0];
  if (dx.elements() == 0) return;
  if (dy.elements() == 0) return static_cast<void>(std::fill_n(dx.data, dx.bytes(), std::byte{0}));
  const auto& choice = c.choice<Choice>();
  const Resampling r = resampling_at_run(c, choice.axes, c.scratch + choice.taps_at);
  if (r.count == 0) return kernels::copy_bytes(dx.data, dy.data, dx.bytes());
  visit_float(dy.type, [&](auto tag) { run_typed<typename decltype(tag)::type>(c, r); });
}

}  // namespace

extern const OpDef op_resize_gradient = {
    .domain = kPlimsollDomain,
    .name = "ResizeGradient",
    .inputs = {4, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .optional_inputs = 0b1100,
};

void gradient_resample(GradientContext& c) {
  const auto& a = c.attrs<ResampleAttrs>();
  const auto given = [&](size_t i) { return is_given(c, i) ? c.in(i) : nullptr; };
  Edge *sizes = given(a.sizes_input), *scales = sizes == nullptr ? given(a.scales_input) : nullptr;
  Edge* roi = a.coordinates == ResampleAttrs::Coordinates::kTfCropAndResize ? given(a.roi_input) : nullptr;
  const auto number = [](auto value) { return static_cast<int64_t>(value); };
  AttributeList attributes = c.attributes()
                                 .set("mode", number(a.mode))
                                 .set("coordinates", number(a.coordinates))
                                 .set("nearest", number(a.nearest))
                                 .set("policy", number(a.policy))
                                 .set("exclude_outside", number(a.exclude_outside))
                                 .set("antialias", number(a.antialias))
                                 .set("cubic_a", a.cubic_a);
  if (!a.axes.empty()) attributes.set("axes", a.axes);
  if (!a.fixed_scales.empty()) attributes.set("fixed_scales", a.fixed_scales);
  c.set(0, c.own_op("ResizeGradient", {c.gradient(), c.shape_of(c.in(0)), roi, scales, sizes}, attributes));
}

}  // namespace plimsoll
