#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/movement.h"
#include "ops/qlinear.h"
#include "ops/resample_taps.h"

namespace plimsoll {
namespace {

float real_at(const TensorView& view, int64_t i) {
  return visit_float(view.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<float>(view.as<T>()[i]);
  });
}

kernels::ResizeShape collapsed(const Resampling& r, std::span<const int64_t> dims) {
  kernels::ResizeShape shape;
  const ScaledAxis& columns = r.axes[r.count - 1];
  shape.columns = columns.taps;
  shape.inner = stride_of(dims, columns.axis);
  size_t outer_axes = columns.axis;
  if (r.count == 2) {
    const ScaledAxis& rows = r.axes[0];
    shape.rows = rows.taps;
    shape.middle = count_of(dims.subspan(rows.axis + 1, columns.axis - rows.axis - 1));
    outer_axes = rows.axis;
  }
  shape.outer = count_of(dims.first(outer_axes));
  return shape;
}

template <typename T, typename Sum>
T converted(Sum value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto low = static_cast<Sum>(std::numeric_limits<T>::min());
    constexpr auto high = static_cast<Sum>(std::numeric_limits<T>::max());
    if (std::isnan(value) || value <= low) return std::isnan(value) ? T(0) : std::numeric_limits<T>::min();
    return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

// Any number of axes, any type, positions outside: element by element. `convert` makes elements of sums.
template <typename T, typename Sum, typename Convert>
class Sampler {
 public:
  Sampler(const RunContext& c, const Resampling& r, const Convert& convert)
      : c_(c), r_(r), convert_(convert) {
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
      c_.outputs[0].as<T>()[n] = convert_(outside ? static_cast<Sum>(a.extrapolation) : sum(0, base));
    }
  }

 private:
  Sum sum(size_t slot, int64_t base) const {
    if (slot == r_.count) return static_cast<Sum>(c_.inputs[0].as<T>()[base]);
    const ScaledAxis& s = r_.axes[slot];
    Sum total = 0;
    for (int64_t t = 0; t < s.taps.taps; ++t) {
      const int64_t at = t * s.taps.out + position_[slot];
      const float weight = s.taps.weight[at];
      if (weight == 0) continue;
      total += static_cast<Sum>(weight) * sum(slot + 1, base + s.taps.index[at] * stride_[s.axis]);
    }
    return total;
  }

  const RunContext& c_;
  const Resampling& r_;
  const Convert& convert_;
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
  const ScaledAxis& s = r.axes[slot];
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

void run_quantized(const RunContext& c, const Resampling& r) {
  const auto& choice = c.choice<ResampleChoice>();
  const TensorView &in = c.inputs[0], &out = c.outputs[0];
  if (r.count == 0) return run_byte_table(c, [](float x) { return x; });
  const Quantization from = read_quantization(c, kUnaryXScale, kUnaryXZero),
                     to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  const float factor = from.scale / to.scale;
  if (choice.kernel == ResampleKernel::kLinear) {
    const kernels::ResizeBytes bytes{in.type == ElementType::kInt8, from.zero, to.zero, factor};
    return kernels::resize_linear(collapsed(r, in.dims), bytes, in.as<uint8_t>(), out.as<uint8_t>(),
                                  c.scratch_as<float>(choice.rows_at), c.threads);
  }
  const auto convert = [&](float value) {
    return quantize_byte(out.type, {1, to.zero}, (value - static_cast<float>(from.zero)) * factor);
  };
  visit_numeric(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 1)
      Sampler<T, float, decltype(convert)>(c, r, convert).run(c.attrs<ResampleAttrs>());
  });
}

}  // namespace

Resampling resampling_at_run(const RunContext& c, std::span<const MovingAxis> axes, std::byte* scratch) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const int64_t named =
      a.axes.empty() ? static_cast<int64_t>(c.inputs[0].rank()) : static_cast<int64_t>(a.axes.size());
  Resampling result;
  for (const MovingAxis& moving : axes) {
    ResampleAxis shape = moving.shape;
    if (a.coordinates == ResampleAttrs::Coordinates::kTfCropAndResize) {
      const TensorView& roi = c.inputs[a.roi_input];
      shape.roi_start = real_at(roi, moving.position);
      shape.roi_end = real_at(roi, moving.position + named);
    }
    if (!shape.is_identity(a)) result.axes[result.count++] = {moving.axis, shape, {}};
  }
  for (size_t i = 0; i < result.count; ++i) {
    ScaledAxis& s = result.axes[i];
    const int64_t taps = tap_count(a, s.shape), entries = taps * s.shape.out;
    auto* index = reinterpret_cast<int32_t*>(scratch);
    auto* weight = reinterpret_cast<float*>(scratch + entries * 4);
    write_taps(a, s.shape, index, weight);
    s.taps = {s.shape.in, s.shape.out, taps, index, weight};
    scratch += entries * 8;
  }
  return result;
}

void run_resample(const RunContext& c) {
  const ResampleAttrs& a = c.attrs<ResampleAttrs>();
  const auto& choice = c.choice<ResampleChoice>();
  const TensorView &in = c.inputs[0], &out = c.outputs[0];
  if (out.elements() == 0) return;
  const Resampling r = resampling_at_run(c, choice.axes, c.scratch + choice.taps_at);
  if (a.quantized) return run_quantized(c, r);
  if (r.count == 0) return kernels::copy_bytes(out.data, in.data, in.bytes());
  switch (choice.kernel) {
    case ResampleKernel::kNearest:
      return kernels::resize_nearest(collapsed(r, in.dims), in.data, out.data, width_of(in.type), c.threads);
    case ResampleKernel::kLinear:
      return visit_float(in.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        kernels::resize_linear(collapsed(r, in.dims), in.as<T>(), out.as<T>(),
                               c.scratch_as<kernels::LaneOf<T>>(choice.rows_at), c.threads);
      });
    case ResampleKernel::kLookUp:
      return copy_nearest(c, r, 0, in.data, out.data);
    case ResampleKernel::kSample:
      break;
  }
  visit_numeric(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Sum = std::conditional_t<sizeof(T) == 8, double, float>;
    Sampler<T, Sum, decltype(&converted<T, Sum>)>(c, r, &converted<T, Sum>).run(a);
  });
}

}  // namespace plimsoll
