#include "kernels/depthwise.h"
#include "ops/channels_last.h"
#include "ops/conv_common.h"
#include "ops/conv_reference.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

struct ConvJob {
  const ConvChoice& choice;
  const float* x;
  const std::byte* packed;
  float* y;
  kernels::ConvEpilogue epilogue;
  std::byte* working;
  int threads;
};

void run_plane(const ConvJob& job, const ConvShape& s, const float* x, const std::byte* packed, float* y,
               const kernels::ConvEpilogue& epilogue) {
  if (job.choice.kernel == ConvKernel::kDepthwise)
    return kernels::depthwise(s, x, packed, y, epilogue, job.threads);
  kernels::conv(s, x, packed, y, epilogue, job.working, job.threads);
}

// One plane of output: the kernel's planes add up in it.
void run_depth(const ConvJob& job, const ConvShape& s, int64_t image, int64_t depth) {
  const Window& w = *job.choice.window;
  const int64_t in_plane = s.in_h * s.in_w * s.in_c, out_plane = s.out_h * s.out_w * s.out_c;
  float* y = job.y + (image * w.out[0] + depth) * out_plane;
  kernels::ConvEpilogue epilogue = job.epilogue;
  if (epilogue.addend != nullptr) epilogue.addend += y - job.y;
  const TapRange taps = tap_range(w, 0, depth);
  if (taps.first == taps.last) {
    ConvShape nothing = s;
    nothing.in_h = 0;
    return run_plane(job, nothing, job.x, job.packed, y, epilogue);
  }
  for (int64_t k = taps.first; k < taps.last; ++k) {
    const int64_t in = image * w.in[0] + depth * w.stride[0] - w.begin[0] + k * w.dilation[0];
    epilogue.activation = k + 1 == taps.last ? job.epilogue.activation : kernels::Activation();
    run_plane(job, s, job.x + in * in_plane, job.packed + k * job.choice.plane_bytes, y, epilogue);
    epilogue.bias = nullptr;
    epilogue.addend = y;
  }
}

void run_planes(const ConvJob& job) {
  ConvShape s = job.choice.shape;
  if (job.choice.window == nullptr) return run_plane(job, s, job.x, job.packed, job.y, job.epilogue);
  const Window& w = *job.choice.window;
  s.batch = 1;
  for (int64_t image = 0; image < w.batch; ++image) {
    for (int64_t depth = 0; depth < w.out[0]; ++depth) run_depth(job, s, image, depth);
  }
}

const float* data_of(const RunContext& c, size_t input) {
  return c.has_input(input) ? c.inputs[input].as<float>() : nullptr;
}

void run_fast(const RunContext& c, const ConvChoice& choice) {
  const ConvShape& s = choice.shape;
  ConvJob job{choice,
              c.inputs[kConvX].as<float>(),
              c.inputs[kConvW].data,
              c.outputs[0].as<float>(),
              {},
              c.scratch + choice.working_at,
              c.threads};
  job.epilogue = {data_of(c, kConvBias), data_of(c, kConvAddend), c.attrs<ConvAttrs>().activation};
  if (!choice.packed) {
    pack_conv_weights(choice, job.packed, data_of(c, kConvScale), c.scratch + choice.packed_at);
    job.packed = c.scratch + choice.packed_at;
  }
  if (choice.channels_last) return run_planes(job);
  float *x_copy = c.scratch_as<float>(choice.x_at), *y_copy = c.scratch_as<float>(choice.y_at);
  to_channels_last(s.batch, s.in_c, choice.in_pixels, job.x, x_copy, c.threads);
  if (job.epilogue.addend != nullptr) {
    to_channels_last(s.batch, s.out_c, choice.out_pixels, job.epilogue.addend, y_copy, c.threads);
    job.epilogue.addend = y_copy;
  }
  job.x = x_copy;
  job.y = y_copy;
  run_planes(job);
  to_channels_first(s.batch, s.out_c, choice.out_pixels, y_copy, c.outputs[0].as<float>(), c.threads);
}

template <typename T>
void run_reference(const RunContext& c, const Window& window) {
  const auto& a = c.attrs<ConvAttrs>();
  const auto data = [&](size_t i) { return c.has_input(i) ? c.inputs[i].as<const T>() : nullptr; };
  ConvOperands<T> o;
  o.x = data(kConvX), o.w = data(kConvW), o.bias = data(kConvBias), o.addend = data(kConvAddend);
  o.scale = data(kConvScale);
  o.y = c.outputs[0].as<T>();
  o.groups = a.groups, o.out_channels = c.inputs[kConvW].dims[0], o.activation = a.activation;
  conv_reference(window, o, c.threads);
}

}  // namespace

void run_conv(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const auto& choice = c.choice<ConvChoice>();
  if (choice.kernel != ConvKernel::kReference) return run_fast(c, choice);
  visit_float(c.inputs[kConvX].type,
              [&](auto tag) { run_reference<typename decltype(tag)::type>(c, *choice.window); });
}

}  // namespace plimsoll
