#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/movement.h"
#include "ops/resample_taps.h"

namespace plimsoll {

using Mode = ResampleAttrs::Mode;
using Coordinates = ResampleAttrs::Coordinates;
using Policy = ResampleAttrs::Policy;

bool is_given(const NodeContext& c, size_t input) {
  if (input == 0 || !c.has_input(input)) return false;
  return !c.ranked(input) || c.rank(input) == 0 || c.dims(input)[0] != Dim(0);
}

size_t resampled_axis(const ResampleAttrs& a, size_t i, size_t rank) {
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

float uniform_scale(Policy policy, float so_far, int64_t size, int64_t dim) {
  const float scale = static_cast<float>(size) / static_cast<float>(dim);
  return policy == Policy::kNotLarger ? std::min(so_far, scale) : std::max(so_far, scale);
}

float first_scale(Policy policy) {
  return policy == Policy::kNotLarger ? std::numeric_limits<float>::infinity() : 0.0f;
}

namespace {

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

void set_sizes(InferContext& c, std::vector<Dim>& dims, std::span<const Dim> sizes) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  float scale = first_scale(a.policy);
  bool known = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dim& dim = dims[resampled_axis(a, i, dims.size())];
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
    Dim& dim = dims[resampled_axis(a, i, dims.size())];
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
      Dim& dim = dims[resampled_axis(a, i, dims.size())];
      dim = scaled_dim(c, dim, (*scales)[i]);
    }
    return dims;
  }
  for (size_t i = 0; i < count; ++i) dims[resampled_axis(a, i, dims.size())] = c.unknown("");
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

}  // namespace plimsoll
