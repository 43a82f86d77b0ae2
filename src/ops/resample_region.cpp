// What a resampling does when axes move, and which part of its input a part of the output needs.
#include <algorithm>

#include "ops/layout.h"
#include "ops/region.h"
#include "ops/resample.h"
#include "ops/resample_taps.h"

namespace plimsoll {

using Coordinates = ResampleAttrs::Coordinates;
using Policy = ResampleAttrs::Policy;

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
  if (a.roi_input > 0 && c.opset() >= 13 && c.is_empty(a.scales_input) != c.is_empty(a.sizes_input) &&
      c.has_input(a.roi_input))
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
    const size_t axis = resampled_axis(a, i, c.rank(0));
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

}  // namespace plimsoll
