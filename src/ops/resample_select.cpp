#include <algorithm>
#include <cstring>

#include "ops/resample_taps.h"

namespace plimsoll {
namespace {

using Mode = ResampleAttrs::Mode;
using Coordinates = ResampleAttrs::Coordinates;
using Policy = ResampleAttrs::Policy;

size_t named_axes(const ResampleAttrs& a, size_t rank) {
  return a.axes.empty() ? rank : a.axes.size();
}

// One scale for all axes, from sizes that infer knew too.
float kept_aspect(const NodeContext& c, std::span<const Dim> in) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const Facts& sizes = c.input(a.sizes_input);
  float scale = first_scale(a.policy);
  for (size_t i = 0; i < named_axes(a, in.size()); ++i) {
    int64_t size = 0;
    if (sizes.constant != nullptr) {
      std::memcpy(&size, sizes.constant->data + i * sizeof(size), sizeof(size));
    } else {
      size = (*sizes.values)[i].value();
    }
    scale = uniform_scale(a.policy, scale, size, in[resampled_axis(a, i, in.size())].value());
  }
  return scale;
}

ResampleKernel kernel_of(const ResampleAttrs& a, ElementType type, size_t moving) {
  const bool fast = moving <= 2 && a.coordinates != Coordinates::kTfCropAndResize;
  if (fast && a.mode == Mode::kNearest) return ResampleKernel::kNearest;
  if (fast && (is_float(type) || a.quantized)) return ResampleKernel::kLinear;
  if (a.mode == Mode::kNearest && (!kNumericTypes.contains(type) || a.extrapolation == 0))
    return ResampleKernel::kLookUp;
  return ResampleKernel::kSample;
}

// What a thread keeps of rows that lie in the dimensions from `axis` on: see kernels/resize.h.
Dim row_bytes(const NodeContext& c, size_t axis, size_t moving) {
  const Dim in = product(c.dims(0).subspan(axis)), out = product(c.output(0).type.dims.subspan(axis));
  if (element_bits(c.type(0)) < 32) return (in + out) * Dim(int64_t{sizeof(float)});
  return moving >= 2 ? in * Dim(element_bits(c.type(0)) / 8) : Dim(0);
}

}  // namespace

std::span<const MovingAxis> moving_axes(SelectContext& c, std::span<const Dim> in, std::span<const Dim> out) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const auto scales = known_scales(c);
  const bool by_sizes = is_given(c, a.sizes_input);
  const bool keeps = by_sizes && a.policy != Policy::kStretch;
  const bool knows_sizes = keeps && (c.constant(a.sizes_input) != nullptr || c.input(a.sizes_input).values);
  if (by_sizes ? keeps && !knows_sizes : !scales) c.reject("the scales are not known");
  const float kept = keeps ? kept_aspect(c, in) : 0;
  const size_t named = named_axes(a, in.size());
  const std::span<MovingAxis> axes = c.array<MovingAxis>(named);
  size_t count = 0;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    for (size_t i = 0; i < named; ++i) {
      if (resampled_axis(a, i, in.size()) != axis) continue;
      ResampleAxis shape{in[axis].value(), out[axis].value()};
      if (!by_sizes) {
        shape.scale = (*scales)[i];
      } else if (a.policy == Policy::kStretch) {
        shape.scale = static_cast<float>(shape.out) / static_cast<float>(shape.in);
      } else {
        shape.scale = kept;
      }
      if (a.coordinates == Coordinates::kTfCropAndResize || !shape.is_identity(a))
        axes[count++] = {axis, static_cast<int64_t>(i), shape};
    }
  }
  return axes.first(count);
}

Dim most_entries(const NodeContext& c, std::span<const Dim> in, std::span<const Dim> out,
                 const std::function<void(size_t axis)>& each) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const auto scales = known_scales(c);
  Dim entries = 0;
  for (size_t i = 0; i < named_axes(a, in.size()); ++i) {
    const size_t axis = resampled_axis(a, i, in.size());
    const bool still = is_given(c, a.sizes_input) ? a.policy == Policy::kStretch && in[axis] == out[axis]
                                                  : scales && i < scales->size() && (*scales)[i] == 1;
    if (still && a.coordinates != Coordinates::kTfCropAndResize) continue;
    entries = entries + most_taps(a, in[axis], out[axis]);
    each(axis);
  }
  return entries;
}

const void* select_resample(SelectContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  auto* choice = c.make<ResampleChoice>();
  if (!c.ranked(0) || !c.output(0).type.ranked) return choice;
  const auto in = c.dims(0), out = c.output(0).type.dims;
  size_t first = in.size(), moving = 0;
  const Dim entries = most_entries(c, in, out, [&](size_t axis) {
    first = std::min(first, axis);
    ++moving;
  });
  choice->taps_at = c.scratch(entries * Dim(8));
  const bool concrete = c.is_concrete() && !(product(out) == Dim(0));
  if (concrete) {
    choice->axes = moving_axes(c, in, out);
    choice->kernel = kernel_of(a, c.type(0), choice->axes.size());
    moving = choice->axes.size();
    if (moving > 0) first = choice->axes[0].axis;
  }
  const bool blends = a.mode != Mode::kNearest && (is_float(c.type(0)) || a.quantized) && moving >= 1;
  if (blends && a.coordinates != Coordinates::kTfCropAndResize)
    choice->rows_at = c.scratch(row_bytes(c, first + (moving >= 2 ? 1 : 0), moving) * Dim(c.threads));
  return choice;
}

}  // namespace plimsoll
