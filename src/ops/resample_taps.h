// Which axes are resampled, how, and where the elements of such an axis come from.
#pragma once

#include "kernels/resize.h"
#include "ops/resample.h"

namespace plimsoll {

// One axis of a concrete resampling.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  float scale = 1;
  float roi_start = 0, roi_end = 1;
  // Nothing moves along it.
  bool is_identity(const ResampleAttrs& a) const {
    return in == out && scale == 1 &&
           (a.coordinates != ResampleAttrs::Coordinates::kTfCropAndResize ||
            (roi_start == 0 && roi_end == 1));
  }
};

struct MovingAxis {
  size_t axis;
  int64_t position;    // among the axes that the node names
  ResampleAxis shape;  // but for the region of interest
};

enum class ResampleKernel : uint8_t {
  kNearest,  // one or two axes, any type
  kLinear,   // one or two axes, f32, any number of taps
  kLookUp,   // nearest along more axes, any type
  kSample,   // anything else, element by element
};

struct ResampleChoice {
  ResampleKernel kernel = ResampleKernel::kSample;
  std::span<const MovingAxis> axes;  // along which something may move, outermost first
  int64_t taps_at = 0, rows_at = 0;  // offsets in scratch: tables of taps, blended rows
};

// The input is there; those that older opsets demand may be there and empty.
bool is_given(const NodeContext& c, size_t input);
// The axis that the i-th scale or size is about.
size_t resampled_axis(const ResampleAttrs& a, size_t i, size_t rank);
std::optional<std::vector<float>> known_scales(const NodeContext& c);
// Where the aspect is kept, one scale for all axes: starts with the first, then takes every axis in.
float first_scale(ResampleAttrs::Policy policy);
float uniform_scale(ResampleAttrs::Policy policy, float so_far, int64_t size, int64_t dim);

// The axes along which something moves from `in` to `out`, both concrete, outermost first. Input 0 is not
// looked at: the gradient has another one there.
std::span<const MovingAxis> moving_axes(SelectContext& c, std::span<const Dim> in, std::span<const Dim> out);
// Entries of the tables of taps for the axes that may move; `each` is called for these.
Dim most_entries(const NodeContext& c, std::span<const Dim> in, std::span<const Dim> out,
                 const std::function<void(size_t axis)>& each);

inline constexpr int32_t kOutside = -1;  // index of a position that shows the extrapolation value

int64_t tap_count(const ResampleAttrs& a, const ResampleAxis& axis);
// At most so many taps for all positions of an axis, whatever its scale.
Dim most_taps(const ResampleAttrs& a, Dim in, Dim out);
// Writes out * tap_count indices and weights, tap after tap; indices are inside the axis, or kOutside.
void write_taps(const ResampleAttrs& a, const ResampleAxis& axis, int32_t* index, float* weight);

// An axis of a run, with its taps.
struct ScaledAxis {
  size_t axis;
  ResampleAxis shape;
  kernels::ResizeAxis taps;
};

struct Resampling {
  size_t count = 0;
  ScaledAxis axes[InferContext::kMaxRank];  // those along which something moves, outermost first
};

// Only the run knows the regions of interest. The tables of taps are written to scratch.
Resampling resampling_at_run(const RunContext& c, std::span<const MovingAxis> axes, std::byte* scratch);

}  // namespace plimsoll
