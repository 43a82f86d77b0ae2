#include "ops/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/resize.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"
#include "ops/resample_taps.h"

namespace plimsoll {
namespace {

using Mode = ResampleAttrs::Mode;
using Coordinates = ResampleAttrs::Coordinates;
using Policy = ResampleAttrs::Policy;

// ---- shapes -----------------------------------------------------------------------------------------

// The inputs that older opsets demand may be there and empty.
bool is_given(const NodeContext& c, size_t input) {
  if (input == 0 || !c.has_input(input)) return false;
  return !c.ranked(input) || c.rank(input) == 0 || c.dims(input)[0] != Dim(0);
}

// The axis that the i-th scale or size is about.
size_t axis_of(const ResampleAttrs& a, size_t i, size_t rank) {
  if (a.axes.empty()) return i;
  return static_cast<size_t>(a.axes[i] < 0 ? a.axes[i] + static_cast<int64_t>(rank) : a.axes[i]);
}

std::optional<std::vector<float>> known_scales(const NodeContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  if (!a.fixed_scales.empty()) return std::vector<float>(a.fixed_scales.begin(), a.fixed_scales.end());
  const TensorView* data = a.scales_input > 0 ? c.constant(a.scales_input) : nullptr;
  if (data == nullptr) return std::nullopt;
  std::vector<float> scales(static_cast<size_t>(data->elements()));
  if (!scales.empty()) std::memcpy(scales.data(), data->data, scales.size() * sizeof(float));
  return scales;
}

// floor(dim * scale), rounded in float as other runtimes do it.
int64_t scaled_size(const InferContext& c, int64_t dim, float scale) {
  const float size = static_cast<float>(dim) * scale;
  if (!(size < 9e18f)) c.reject("dimension {} cannot be scaled by {}", dim, scale);
  return static_cast<int64_t>(size);
}

Dim scaled_dim(InferContext& c, Dim dim, float scale) {
  if (!(scale > 0) || !std::isfinite(scale)) c.reject("scale {} is not positive", scale);
  if (dim.is_constant()) return scaled_size(c, dim.value(), scale);
  for (int64_t divisor = 1; divisor <= 64; ++divisor) {
    const float multiple = scale * static_cast<float>(divisor);
    if (multiple == std::floor(multiple) && multiple < 1e6f)
      return floor_div(dim * Dim(static_cast<int64_t>(multiple)), Dim(divisor));
  }
  return c.unknown("");
}

float uniform_scale(Policy policy, float so_far, int64_t size, int64_t dim) {
  const float scale = static_cast<float>(size) / static_cast<float>(dim);
  return policy == Policy::kNotLarger ? std::min(so_far, scale) : std::max(so_far, scale);
}

float first_scale(Policy policy) {
  return policy == Policy::kNotLarger ? std::numeric_limits<float>::infinity() : 0.0f;
}

void set_sizes(InferContext& c, std::vector<Dim>& dims, std::span<const Dim> sizes) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  float scale = first_scale(a.policy);
  bool known = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim& dim = dims[axis_of(a, i, dims.size())];
    if (sizes[i].is_constant() && sizes[i].value() < 0) c.reject("size {} is negative", sizes[i].value());
    known = known && sizes[i].is_constant() && dim.is_constant();
    if (a.policy == Policy::kStretch) {
      dim = sizes[i];
    } else if (known) {
      if (dim.value() == 0) c.reject("shape {} is empty and has no aspect to keep", to_string(c.dims(0)));
      scale = uniform_scale(a.policy, scale, sizes[i].value(), dim.value());
    }
  }
  if (a.policy == Policy::kStretch) return;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim& dim = dims[axis_of(a, i, dims.size())];
    dim = known ? Dim(scaled_size(c, 1, std::floor(scale * static_cast<float>(dim.value()) + 0.5f)))
                : c.unknown("");
  }
}

// How many of scales, sizes or roi there are is right for the axes.
void check_length(InferContext& c, size_t length, size_t per_axis, const char* what) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const size_t count = (a.axes.empty() ? c.rank(0) : a.axes.size()) * per_axis;
  if (length != count) c.reject("expected {} {}, found {}", count, what, length);
}

std::vector<Dim> resampled_dims(InferContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  const size_t count = a.axes.empty() ? dims.size() : a.axes.size();
  if (is_given(c, a.sizes_input)) {
    if (const auto sizes = c.values(a.sizes_input)) {
      check_length(c, sizes->size(), 1, "sizes");
      set_sizes(c, dims, *sizes);
      return dims;
    }
  } else if (const auto scales = known_scales(c)) {
    check_length(c, scales->size(), 1, "scales");
    for (size_t i = 0; i < count; ++i) {
      Dim& dim = dims[axis_of(a, i, dims.size())];
      dim = scaled_dim(c, dim, (*scales)[i]);
    }
    return dims;
  }
  for (size_t i = 0; i < count; ++i) dims[axis_of(a, i, dims.size())] = c.unknown("");
  return dims;
}

void check_inputs(InferContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  c.expect_type(0, a.mode == Mode::kNearest ? kAllTypes : kNumericTypes);
  const bool scales = is_given(c, a.scales_input) || !a.fixed_scales.empty(),
             sizes = is_given(c, a.sizes_input);
  // An input of unknown length may turn out to be empty.
  const bool sure =
      !scales || a.scales_input == 0 || (c.ranked(a.scales_input) && known_length(c, a.scales_input));
  if (scales && sizes && sure) c.reject("both scales and sizes are given");
  if (!scales && !sizes) c.reject("neither scales nor sizes are given");
  if (a.scales_input > 0 && c.has_input(a.scales_input))
    c.expect_type(a.scales_input, types(ElementType::kFloat));
  if (sizes) {
    c.expect_type(a.sizes_input, types(ElementType::kInt64));
    known_length(c, a.sizes_input);
  }
  if (a.coordinates != Coordinates::kTfCropAndResize) return;
  if (!is_given(c, a.roi_input)) c.reject("tf_crop_and_resize needs the input 'roi'");
  c.expect_type(a.roi_input, kFloatTypes);
  const auto length = known_length(c, a.roi_input);
  if (length && c.ranked(0)) check_length(c, *length, 2, "numbers in roi");
}

// ---- run --------------------------------------------------------------------------------------------

struct Scaled {
  size_t axis;
  ResampleAxis shape;
  kernels::ResizeAxis taps;
};

struct Resampling {
  size_t count = 0;
  Scaled axes[InferContext::kMaxRank];  // those along which something moves, outermost first
};

float real_at(const TensorView& view, int64_t i) {
  return visit_float(view.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<float>(view.as<T>()[i]);
  });
}

// The scale of the i-th axis named, at run time.
float scale_at_run(const RunContext& c, size_t i, bool sizes_given) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const auto in = c.inputs[0].dims, out = c.outputs[0].dims;
  if (!a.fixed_scales.empty()) return a.fixed_scales[i];
  if (!sizes_given) return real_at(c.inputs[a.scales_input], static_cast<int64_t>(i));
  if (a.policy == Policy::kStretch) {
    const size_t axis = axis_of(a, i, in.size());
    return static_cast<float>(out[axis]) / static_cast<float>(in[axis]);
  }
  float scale = first_scale(a.policy);
  const TensorView& sizes = c.inputs[a.sizes_input];
  for (int64_t k = 0; k < sizes.elements(); ++k)
    scale =
        uniform_scale(a.policy, scale, index_at(sizes, k), in[axis_of(a, static_cast<size_t>(k), in.size())]);
  return scale;
}

Resampling resampling_at_run(const RunContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const auto in = c.inputs[0].dims, out = c.outputs[0].dims;
  const bool sizes_given =
      a.sizes_input > 0 && c.has_input(a.sizes_input) && c.inputs[a.sizes_input].elements() > 0;
  const size_t count = a.axes.empty() ? in.size() : a.axes.size();
  Resampling result;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    for (size_t i = 0; i < count; ++i) {
      if (axis_of(a, i, in.size()) != axis) continue;
      ResampleAxis shape{in[axis], out[axis], scale_at_run(c, i, sizes_given)};
      if (a.coordinates == Coordinates::kTfCropAndResize) {
        shape.roi_start = real_at(c.inputs[a.roi_input], static_cast<int64_t>(i));
        shape.roi_end = real_at(c.inputs[a.roi_input], static_cast<int64_t>(i + count));
      }
      if (!shape.is_identity(a)) result.axes[result.count++] = {axis, shape, {}};
    }
  }
  return result;
}

// Fills the tables of taps into scratch and returns what is behind them.
std::byte* make_taps(const ResampleAttrs& a, Resampling& r, std::byte* scratch) {
  for (size_t i = 0; i < r.count; ++i) {
    Scaled& s = r.axes[i];
    const int64_t taps = tap_count(a, s.shape), entries = taps * s.shape.out;
    auto* index = reinterpret_cast<int32_t*>(scratch);
    auto* weight = reinterpret_cast<float*>(scratch + entries * 4);
    write_taps(a, s.shape, index, weight);
    s.taps = {s.shape.in, s.shape.out, taps, index, weight};
    scratch += entries * 8;
  }
  return scratch;
}

kernels::ResizeShape collapsed(const Resampling& r, std::span<const int64_t> dims) {
  kernels::ResizeShape shape;
  const Scaled& columns = r.axes[r.count - 1];
  shape.columns = columns.taps;
  shape.inner = stride_of(dims, columns.axis);
  size_t outer_axes = columns.axis;
  if (r.count == 2) {
    const Scaled& rows = r.axes[0];
    shape.rows = rows.taps;
    shape.middle = count_of(dims.subspan(rows.axis + 1, columns.axis - rows.axis - 1));
    outer_axes = rows.axis;
  }
  shape.outer = count_of(dims.first(outer_axes));
  return shape;
}

// Any number of axes, any type, positions outside: element by element.
template <typename T, typename Sum>
class Sampler {
 public:
  Sampler(const RunContext& c, const Resampling& r) : c_(c), r_(r) {
    const auto in = c.inputs[0].dims;
    int64_t stride = 1;
    for (size_t axis = in.size(); axis-- > 0;) {
      stride_[axis] = stride;
      stride *= in[axis];
    }
  }
  void run(const ResampleAttrs& a) {
    const auto out = c_.outputs[0].dims;
    const int64_t count = c_.outputs[0].elements();
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n, base = 0;
      bool outside = false;
      size_t slot = r_.count;
      for (size_t axis = out.size(); axis-- > 0;) {
        const int64_t i = rest % out[axis];
        rest /= out[axis];
        if (slot > 0 && r_.axes[slot - 1].axis == axis) {
          position_[--slot] = i;
          outside = outside || r_.axes[slot].taps.index[i] == kOutside;
        } else {
          base += i * stride_[axis];
        }
      }
      c_.outputs[0].as<T>()[n] = outside ? convert(static_cast<Sum>(a.extrapolation)) : convert(sum(0, base));
    }
  }

 private:
  Sum sum(size_t slot, int64_t base) const {
    if (slot == r_.count) return static_cast<Sum>(c_.inputs[0].as<T>()[base]);
    const Scaled& s = r_.axes[slot];
    Sum total = 0;
    for (int64_t t = 0; t < s.taps.taps; ++t) {
      const int64_t at = t * s.taps.out + position_[slot];
      const float weight = s.taps.weight[at];
      if (weight == 0) continue;
      total += static_cast<Sum>(weight) * sum(slot + 1, base + s.taps.index[at] * stride_[s.axis]);
    }
    return total;
  }
  static T convert(Sum value) {
    if constexpr (std::is_integral_v<T>) {
      constexpr auto low = static_cast<Sum>(std::numeric_limits<T>::min());
      constexpr auto high = static_cast<Sum>(std::numeric_limits<T>::max());
      if (std::isnan(value) || value <= low) return std::isnan(value) ? T(0) : std::numeric_limits<T>::min();
      return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
    } else {
      return static_cast<T>(value);
    }
  }

  const RunContext& c_;
  const Resampling& r_;
  int64_t stride_[InferContext::kMaxRank] = {};
  int64_t position_[InferContext::kMaxRank] = {};
};

// Nearest for types that are no numbers, along three axes or more: one axis after the other is looked up.
void copy_nearest(const RunContext& c, const Resampling& r, size_t slot, const std::byte* in,
                  std::byte* out) {
  const auto width = static_cast<int64_t>(width_of(c.inputs[0].type));
  const size_t first = slot == 0 ? 0 : r.axes[slot - 1].axis + 1;
  if (slot == r.count) {
    const int64_t bytes = count_of(c.inputs[0].dims.subspan(first)) * width;
    std::memcpy(out, in, static_cast<size_t>(bytes));
    return;
  }
  const Scaled& s = r.axes[slot];
  const int64_t outer = count_of(c.inputs[0].dims.subspan(first, s.axis - first));
  const int64_t in_step = stride_of(c.inputs[0].dims, s.axis) * width;
  const int64_t out_step = stride_of(c.outputs[0].dims, s.axis) * width;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < s.taps.out; ++i) {
      std::byte* to = out + (o * s.taps.out + i) * out_step;
      if (s.taps.index[i] == kOutside) {
        std::memset(to, 0, static_cast<size_t>(out_step));
      } else {
        copy_nearest(c, r, slot + 1, in + (o * s.taps.in + s.taps.index[i]) * in_step, to);
      }
    }
  }
}

}  // namespace

void infer_resample(InferContext& c) {
  check_inputs(c);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  resolve_axes(c, a.axes, c.rank(0));
  const std::vector<Dim> dims = resampled_dims(c);
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim in = c.dims(0)[i];
    if (in == Dim(0) && dims[i].is_constant() && dims[i].value() > 0)
      c.reject("axis {} of shape {} has nothing to sample", i, to_string(c.dims(0)));
    if (in.is_constant() && in.value() > INT32_MAX)
      c.reject("axis {}: {} elements are too many", i, in.value());
  }
  c.set_output(0, c.type(0), dims);
}

void select_resample(SelectContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  if (!c.ranked(0)) return;
  const auto in = c.dims(0), out = c.output(0).type.dims;
  const auto scales = known_scales(c);
  const size_t count = a.axes.empty() ? in.size() : a.axes.size();
  Dim entries = 0;
  size_t first = in.size(), moving = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = axis_of(a, i, in.size());
    const bool still = is_given(c, a.sizes_input) ? a.policy == Policy::kStretch && in[axis] == out[axis]
                                                  : scales && i < scales->size() && (*scales)[i] == 1;
    if (still && a.coordinates != Coordinates::kTfCropAndResize) continue;
    entries = entries + most_taps(a, in[axis], out[axis]);
    first = std::min(first, axis);
    ++moving;
  }
  c.scratch_bytes = entries * Dim(8) + Dim(64);
  const bool blends_rows = a.mode != Mode::kNearest && c.type(0) == ElementType::kFloat && moving >= 2;
  if (blends_rows && a.coordinates != Coordinates::kTfCropAndResize)
    c.scratch_bytes = c.scratch_bytes + product(in.subspan(first + 1)) * Dim(4 * int64_t{c.threads});
}

void layout_resample(LayoutContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  if (!c.ranked(0) || !a.axes.empty() || a.coordinates == Coordinates::kTfCropAndResize) return;
  const size_t rank = c.rank(0);
  const std::vector<int64_t> order = LayoutContext::order(rank);
  if (a.sizes_input == 0) {
    if (a.scales_input == 0 || !c.has_length(a.scales_input, rank)) return;
    c.either({0});
    return c.changes().set_entries(a.scales_input, order);
  }
  for (size_t i : {a.scales_input, a.sizes_input}) {
    if (!c.is_empty(i) && !c.has_length(i, rank)) return;
  }
  c.either({0});
  // The region of interest is not looked at, and has the other order.
  if (c.opset() >= 13 && c.is_empty(a.scales_input) != c.is_empty(a.sizes_input) && c.has_input(a.roi_input))
    c.changes().leave_out(a.roi_input);
  for (size_t i : {a.scales_input, a.sizes_input}) {
    if (!c.is_empty(i)) c.changes().set_entries(i, order);
  }
}

namespace {

// The input positions that a part of one axis is made of.
Interval sampled(const ResampleAttrs& a, const ResampleAxis& axis, const Interval& wanted) {
  const int64_t taps = tap_count(a, axis);
  std::vector<int32_t> index(static_cast<size_t>(taps * axis.out));
  std::vector<float> weight(index.size());
  write_taps(a, axis, index.data(), weight.data());
  Interval needs = {axis.in, 0};
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t i = wanted.begin; i < wanted.end; ++i) {
      const int64_t from = index[static_cast<size_t>(t * axis.out + i)];
      needs = {std::min(needs.begin, from), std::max(needs.end, from + 1)};
    }
  }
  return needs;
}

}  // namespace

// Along an axis that moves, positions are fractions of the whole axis, so a part cannot be run by itself.
void region_resample(RegionContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const bool sizes_given = is_given(c, a.sizes_input);
  const auto scales = known_scales(c);
  if (a.coordinates == Coordinates::kTfCropAndResize || a.policy != Policy::kStretch) return c.whole();
  if (!sizes_given && !scales) return c.whole();
  c.runs_on_parts = true;
  need_broadcast(c, 0);  // the axes that nothing is said about
  std::vector<int64_t> sizes;
  const size_t count = a.axes.empty() ? c.rank(0) : a.axes.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = axis_of(a, i, c.rank(0));
    ResampleAxis shape{c.size(0, axis), c.output(0).type.dims[axis].value(), 1};
    shape.scale = sizes_given ? static_cast<float>(shape.out) / static_cast<float>(shape.in) : (*scales)[i];
    sizes.push_back(c.wanted(axis).size());
    if (shape.is_identity(a)) {
      c.needs[0][axis] = c.wanted(axis);
      continue;
    }
    c.needs[0][axis] = sampled(a, shape, c.wanted(axis));
    const bool all = c.wanted(axis).size() == shape.out;
    if (all) c.needs[0][axis] = {0, shape.in};
    c.runs_on_parts &= all;
  }
  if (sizes_given) c.changes.set_integers(a.sizes_input, sizes);
}

void run_resample(const RunContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const TensorView& in = c.inputs[0];
  if (c.outputs[0].elements() == 0) return;
  Resampling r = resampling_at_run(c);
  if (r.count == 0) return kernels::copy_bytes(c.outputs[0].data, in.data, in.bytes());
  std::byte* rest = make_taps(a, r, c.scratch);
  const bool fast = r.count <= 2 && a.coordinates != Coordinates::kTfCropAndResize;
  if (fast && a.mode == Mode::kNearest)
    return kernels::resize_nearest(collapsed(r, in.dims), in.data, c.outputs[0].data, width_of(in.type),
                                   c.threads);
  if (fast && in.type == ElementType::kFloat)
    return kernels::resize_linear(collapsed(r, in.dims), in.as<float>(), c.outputs[0].as<float>(),
                                  reinterpret_cast<float*>(rest), c.threads);
  if (a.mode == Mode::kNearest && (!kNumericTypes.contains(in.type) || a.extrapolation == 0))
    return copy_nearest(c, r, 0, in.data, c.outputs[0].data);
  visit_numeric(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
    Sampler<T, Sum>(c, r).run(a);
  });
}

}  // namespace plimsoll
