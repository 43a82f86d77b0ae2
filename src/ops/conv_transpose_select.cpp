#include <algorithm>
#include <numeric>

#include "kernels/gemm.h"
#include "ops/conv_common.h"
#include "ops/conv_transpose.h"

namespace plimsoll {

PhaseTaps phase_taps(int64_t remainder, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t divisor = std::gcd(stride, dilation);
  PhaseTaps taps;
  taps.step = stride / divisor;
  taps.dilation = dilation / divisor;
  for (int64_t t = 0; t < std::min(taps.step, kernel); ++t) {
    if (t * dilation % stride != remainder) continue;
    taps.first = t;
    taps.count = (kernel - t + taps.step - 1) / taps.step;
    break;
  }
  return taps;
}

kernels::ConvShape phase_shape(const TransposePlan& p, const PhaseTaps& h, const PhaseTaps& w) {
  kernels::ConvShape s;
  s.groups = p.groups, s.in_c = p.in_c, s.out_c = p.side_by_side ? p.out_c * p.stride[1] : p.out_c;
  s.kernel_h = std::max<int64_t>(1, h.count), s.dilation_h = h.dilation;
  s.kernel_w = std::max<int64_t>(1, w.count), s.dilation_w = w.dilation;
  return s;
}

template <typename T>
void pack_phases(const TransposePlan& p, const void* raw, std::byte* destination) {
  const int64_t plane = p.kernel[0] * p.kernel[1], out_c = p.out_c / p.groups;
  for_each_phase<T>(p, [&](int64_t, int64_t, const PhaseTaps& h, const PhaseTaps& w, int64_t offset) {
    if (h.count == 0 || w.count == 0) return;
    const int64_t last = (h.first + (h.count - 1) * h.step) * p.kernel[1] + w.first + (w.count - 1) * w.step;
    kernels::ConvWeights<T> weights;
    weights.data = static_cast<const char*>(raw) + last * int64_t{sizeof(T)};
    weights.in_stride = out_c * plane;
    weights.out_stride = plane;
    weights.row_stride = -h.step * p.kernel[1];
    weights.column_stride = -w.step;
    weights.block = out_c;
    weights.block_stride = p.side_by_side ? 1 : p.in_c / p.groups * weights.in_stride;
    if constexpr (std::is_same_v<T, float>) {
      if (p.winograd != kernels::WinogradForm::kNone)
        return kernels::winograd_pack(phase_shape(p, h, w), p.winograd, weights, destination + offset);
    }
    kernels::conv_pack<T>(phase_shape(p, h, w), weights, destination + offset);
  });
}

template void pack_phases<float>(const TransposePlan&, const void*, std::byte*);
template void pack_phases<double>(const TransposePlan&, const void*, std::byte*);
template void pack_phases<Float16>(const TransposePlan&, const void*, std::byte*);
template void pack_phases<BFloat16>(const TransposePlan&, const void*, std::byte*);

namespace {

constexpr int64_t kMaxPhases = 4096;

bool is_fast(const TransposeAttrs& a, ElementType type, size_t spatial) {
  if (!is_float(type) || spatial > 2) return false;
  int64_t phases = 1;
  for (size_t i = 0; i < spatial; ++i) phases = checked_mul(phases, a.window.stride(i));
  return phases <= kMaxPhases;
}

TransposePlan make_plan(const TransposeAttrs& a, std::span<const int64_t> w) {
  TransposePlan plan;
  plan.groups = a.groups, plan.in_c = w[0], plan.out_c = checked_mul(w[1], a.groups);
  const size_t spatial = w.size() - 2, last = spatial - 1;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t to = 2 - spatial + i;
    plan.kernel[to] = w[2 + i], plan.stride[to] = a.window.stride(i),
    plan.dilation[to] = a.window.dilation(i);
  }
  plan.side_by_side = !a.is_gradient && plan.kernel[1] == plan.stride[1] && plan.dilation[1] == 1 &&
                      a.groups == 1 && a.output_shape.empty() && !a.window.is_same() &&
                      a.window.pad_begin(last) == 0 && a.window.pad_end(last) == 0 && a.extra(last) == 0;
  return plan;
}

// Only a stride of 1 leaves one phase with all taps.
kernels::WinogradForm winograd_of(const TransposeAttrs& a, const TransposePlan& p) {
  const PhaseTaps h = phase_taps(0, p.kernel[0], p.stride[0], p.dilation[0]);
  const PhaseTaps w = phase_taps(0, p.kernel[1], p.stride[1], p.dilation[1]);
  const bool applies =
      p.stride[0] == 1 && p.stride[1] == 1 && kernels::winograd_applies(phase_shape(p, h, w));
  return applies ? a.winograd : kernels::WinogradForm::kNone;
}

// A bound for every phase and every image: see run_phase.
template <typename T>
kernels::ConvScratch scratch_bound(const TransposeAttrs& a, const TransposePlan& p) {
  kernels::ConvShape s;
  s.in_c = p.in_c, s.groups = p.groups, s.out_c = p.out_c;
  int64_t behind[2];
  const size_t spatial = 2;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t divisor = std::gcd(p.stride[i], p.dilation[i]);
    const int64_t extent = (p.kernel[i] - 1) * p.dilation[i] + 1;
    (i == 0 ? s.kernel_h : s.kernel_w) = ceil_div(p.kernel[i], p.stride[i] / divisor);
    (i == 0 ? s.dilation_h : s.dilation_w) = p.dilation[i] / divisor;
    (i == 0 ? s.pad_top : s.pad_left) = extent / p.stride[i] + 1;
    int64_t extra = a.is_gradient ? p.stride[i] - 1 : 0, shape = 0;
    for (int64_t value : a.output_padding) extra = std::max(extra, value);
    for (int64_t value : a.output_shape) shape = std::max(shape, value);
    behind[i] = (extra + extent + shape) / p.stride[i] + 1;
  }
  return kernels::conv_scratch<T>(s, behind[0], behind[1]);
}

// How much is cut off before the first output.
int64_t cut_before(const TransposeAttrs& a, size_t i, int64_t in, int64_t kernel, int64_t out) {
  if (a.is_gradient) return window_begin(a.window, i, out, kernel, in);
  if (a.output_shape.empty() && !a.window.is_same()) return a.window.pad_begin(i);
  const int64_t total = std::max<int64_t>(0, full_transpose_output(a, i, in, kernel).value() - out);
  return a.window.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
}

PackFormat format_of(const TransposePlan& p) {
  return {"conv_transpose",
          {kernels::packed_b_format(), p.groups, p.stride[0], p.stride[1], p.dilation[0], p.dilation[1],
           p.side_by_side, static_cast<int64_t>(p.winograd)}};
}

void set_sizes(const Window& w, TransposeChoice& choice) {
  choice.batch = w.batch;
  for (size_t i = 0; i < w.rank; ++i) {
    const size_t to = 2 - w.rank + i;
    choice.in[to] = w.in[i], choice.out[to] = w.out[i], choice.begin[to] = w.begin[i];
  }
}

template <typename T>
void select_phases(SelectContext& c, std::span<const int64_t> w, TransposeChoice& choice) {
  const auto& a = c.attrs<TransposeAttrs>();
  choice.plan = make_plan(a, w);
  if (std::is_same_v<T, float> && w.size() == 4) choice.plan.winograd = winograd_of(a, choice.plan);
  const TransposePlan& plan = choice.plan;
  const int64_t packed_bytes = for_each_phase<T>(plan, [](auto&&...) {});
  choice.packed = c.pack(1, format_of(plan), packed_bytes);
  if (!c.ranked(0) || !c.output(0).type.ranked) return;
  const kernels::ConvScratch need = scratch_bound<T>(a, plan);
  const Dim rows = c.rank(0) == 4 ? c.dims(0)[spatial_axis(a.window, 0)] : Dim(1);
  if (plan.side_by_side) choice.bias_at = c.scratch(plan.out_c * plan.stride[1] * int64_t{sizeof(T)});
  if (!choice.packed) choice.packed_at = c.scratch(packed_bytes);
  if (!choice.channels_last) {
    choice.x_at = c.scratch(product(c.dims(0)) * int64_t{sizeof(T)});
    choice.y_at = c.scratch(product(c.output(0).type.dims) * int64_t{sizeof(T)});
  }
  if (plan.winograd != kernels::WinogradForm::kNone) {
    const kernels::ConvShape phase = phase_shape(plan, {.count = plan.kernel[0]}, {.count = plan.kernel[1]});
    choice.working_at = c.scratch(
        static_cast<int64_t>(kernels::winograd_most_scratch_bytes(phase, plan.winograd, c.threads)));
    return;
  }
  const Dim columns = c.dims(0)[spatial_axis(a.window, c.rank(0) - 3)];
  const Dim row = columns * need.bytes_per_pixel + need.bytes_per_row;
  kernels::ConvShape pointwise;
  pointwise.in_c = plan.in_c, pointwise.groups = plan.groups;
  choice.working_at = c.scratch(min(Dim(need.limit_bytes), rows * row + need.base_bytes) * c.threads +
                                kernels::conv_product_scratch_bytes<T>(pointwise, c.threads));
}

}  // namespace

const void* select_conv_transpose(SelectContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  auto* choice = c.make<TransposeChoice>();
  const auto w = constant_dims(c.input(1));
  if (!w) return choice;
  choice->channels_last = a.window.channels_last;
  if (is_fast(a, c.type(1), w->size() - 2)) {
    choice->kernel = TransposeKernel::kPhases;
    visit_float(c.type(1), [&](auto tag) { select_phases<typename decltype(tag)::type>(c, *w, *choice); });
  }
  if (!c.is_concrete()) return choice;
  Window window = make_window(a.window, *constant_dims(c.input(0)), *constant_dims(c.output(0)),
                              std::span<const int64_t>(*w).subspan(2));
  for (size_t i = 0; i < window.rank; ++i)
    window.begin[i] = cut_before(a, i, window.in[i], window.kernel[i], window.out[i]);
  if (choice->kernel == TransposeKernel::kReference) {
    choice->window = c.make<Window>(window);
  } else {
    set_sizes(window, *choice);
  }
  return choice;
}

void pack_conv_transpose(const PackContext& c) {
  visit_float(c.raw.type, [&](auto tag) {
    pack_phases<typename decltype(tag)::type>(c.choice<TransposeChoice>().plan, c.raw.data, c.destination);
  });
}

}  // namespace plimsoll
