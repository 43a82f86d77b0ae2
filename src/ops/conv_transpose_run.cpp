#include <algorithm>

#include "ops/channels_last.h"
#include "ops/conv_reference.h"
#include "ops/conv_transpose.h"

namespace plimsoll {
namespace {

template <typename T>
struct TransposeJob {
  const TransposeChoice& choice;
  const T* x = nullptr;
  const std::byte* packed = nullptr;
  const T* bias = nullptr;
  T* y = nullptr;
  std::byte* working = nullptr;
  int threads = 1;
};

// Of the outputs whose position plus `begin` has this remainder: the first, how many, and the padding before
// the input of the first, in the phase's own convolution.
struct PhaseOutputs {
  int64_t first = 0, count = 0, pad = 0;
};

PhaseOutputs phase_outputs(const TransposeChoice& choice, int i, int64_t remainder, const PhaseTaps& taps) {
  const int64_t stride = choice.plan.stride[i];
  PhaseOutputs o;
  o.first = ((remainder - choice.begin[i]) % stride + stride) % stride;
  if (o.first >= choice.out[i]) return o;
  o.count = (choice.out[i] - 1 - o.first) / stride + 1;
  const int64_t input = (o.first + choice.begin[i] - taps.first * choice.plan.dilation[i]) / stride;
  o.pad = (taps.count - 1) * taps.dilation - input;
  return o;
}

template <typename T>
void run_phase(const TransposeJob<T>& job, int64_t remainder_h, int64_t remainder_w, const PhaseTaps& taps_h,
               const PhaseTaps& taps_w, int64_t offset) {
  const TransposeChoice& choice = job.choice;
  const TransposePlan& p = choice.plan;
  const bool any = taps_h.count > 0 && taps_w.count > 0;
  const PhaseOutputs h = phase_outputs(choice, 0, remainder_h, taps_h);
  PhaseOutputs w = phase_outputs(choice, 1, remainder_w, taps_w);
  if (p.side_by_side) w = {0, choice.in[1], 0};
  kernels::ConvShape s = phase_shape(p, taps_h, taps_w);
  s.batch = choice.batch;
  s.in_h = any ? choice.in[0] : 0, s.in_w = choice.in[1];
  s.out_h = h.count, s.out_w = w.count;
  s.pad_top = any ? h.pad : 0, s.pad_left = any ? w.pad : 0;
  s.out_pixel_stride = p.stride[1] * p.out_c;
  s.out_row_stride = p.stride[0] * choice.out[1] * p.out_c;
  s.out_image_stride = choice.out[0] * choice.out[1] * p.out_c;
  T* y = job.y + (h.first * choice.out[1] + w.first) * p.out_c;
  const kernels::ConvEpilogue<T> epilogue{job.bias, nullptr, {}};
  if constexpr (std::is_same_v<T, float>) {
    if (p.winograd != kernels::WinogradForm::kNone)
      return kernels::winograd(s, p.winograd, job.x, job.packed + offset, y, epilogue, job.working,
                               job.threads);
  }
  kernels::conv_as<T>(s, job.x, job.packed + offset, y, epilogue, job.working, job.threads);
}

template <typename T>
void run_fast(const RunContext& c, const TransposeChoice& choice) {
  const TransposePlan& p = choice.plan;
  TransposeJob<T> job{choice, c.inputs[0].as<T>(), c.inputs[1].data};
  job.y = c.outputs[0].as<T>(), job.threads = c.threads;
  const bool has_bias = c.has_input(2) && !c.attrs<TransposeAttrs>().is_gradient;
  job.bias = has_bias ? c.inputs[2].as<T>() : nullptr;
  job.working = c.scratch + choice.working_at;
  if (p.side_by_side && job.bias != nullptr) {
    T* wide = c.scratch_as<T>(choice.bias_at);
    for (int64_t i = 0; i < p.stride[1]; ++i) std::copy_n(job.bias, p.out_c, wide + i * p.out_c);
    job.bias = wide;
  }
  if (!choice.packed) {
    pack_phases<T>(p, job.packed, c.scratch + choice.packed_at);
    job.packed = c.scratch + choice.packed_at;
  }
  if (!choice.channels_last) {
    T* copy = c.scratch_as<T>(choice.x_at);
    to_channels_last(choice.batch, p.in_c, choice.in[0] * choice.in[1], job.x, copy, c.threads);
    job.x = copy;
    job.y = c.scratch_as<T>(choice.y_at);
  }
  for_each_phase<T>(p, [&](int64_t h, int64_t v, const PhaseTaps& taps_h, const PhaseTaps& taps_w,
                           int64_t offset) { run_phase(job, h, v, taps_h, taps_w, offset); });
  if (!choice.channels_last)
    to_channels_first(choice.batch, p.out_c, choice.out[0] * choice.out[1], job.y, c.outputs[0].as<T>(),
                      c.threads);
}

}  // namespace

void run_conv_transpose(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const auto& choice = c.choice<TransposeChoice>();
  const int64_t groups = c.attrs<TransposeAttrs>().groups;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (choice.kernel == TransposeKernel::kPhases) return run_fast<T>(c, choice);
    ConvOperands<T> o;
    o.x = c.inputs[0].as<T>(), o.w = c.inputs[1].as<T>(), o.y = c.outputs[0].as<T>();
    const bool has_bias = c.has_input(2) && !c.attrs<TransposeAttrs>().is_gradient;
    o.bias = has_bias ? c.inputs[2].as<T>() : nullptr;
    o.groups = groups, o.out_channels = c.inputs[1].dims[1] * groups;
    conv_transpose_reference(*choice.window, o, c.threads);
  });
}

}  // namespace plimsoll
