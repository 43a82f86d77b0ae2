#include "kernels/depthwise.h"
#include "kernels/strassen.h"
#include "ops/channels_last.h"
#include "ops/conv_common.h"
#include "ops/conv_reference.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

template <typename T>
struct ConvJob {
  const ConvChoice& choice;
  const T* x;
  const std::byte* packed;
  T* y;
  kernels::ConvEpilogue<T> epilogue;
  std::byte* working;
  int threads;
  BFloat16* image = nullptr;  // of a rounded one
};

// One where there is so little to do that threads cost as much as they save.
int threads_of(const ConvChoice& choice, const ConvShape& s, int threads) {
  const int64_t worth_sharing = choice.kernel == ConvKernel::kDepthwise ? 64 << 10 : 256 << 10;
  const int64_t taps = s.kernel_h * s.kernel_w * s.in_c / s.groups;
  return s.batch * s.out_h * s.out_w * s.out_c * taps < worth_sharing ? 1 : threads;
}

template <typename T>
void run_plane(const ConvJob<T>& job, const ConvShape& s, const T* x, const std::byte* packed, T* y,
               const kernels::ConvEpilogue<T>& epilogue) {
  if (job.choice.kernel == ConvKernel::kDepthwise)
    return kernels::depthwise_as<T>(s, x, packed, y, epilogue, threads_of(job.choice, s, job.threads));
  if constexpr (std::is_same_v<T, float>) {
    if (job.choice.kernel == ConvKernel::kRounded)
      return run_rounded_conv(s, x, packed, y, epilogue, job.image, job.working, job.threads);
    if (job.choice.strassen) {
      kernels::GemmEpilogue<> e;
      e.bias = epilogue.bias, e.activation = epilogue.activation;
      e.addend = epilogue.addend, e.addend_stride = s.out_c;
      return kernels::strassen(product_of(s), {x, s.in_c, 1}, packed, {y, s.out_c}, e, job.working,
                               job.threads);
    }
  }
  if constexpr (!std::is_same_v<T, double>) {
    const kernels::WinogradForm form = job.choice.winograd;
    if (form != kernels::WinogradForm::kNone)
      return kernels::winograd(s, form, x, packed, y, epilogue, job.working, job.threads);
  }
  kernels::conv_as<T>(s, x, packed, y, epilogue, job.working, threads_of(job.choice, s, job.threads));
}

// One plane of output: the kernel's planes add up in it.
template <typename T>
void run_depth(const ConvJob<T>& job, const ConvShape& s, int64_t image, int64_t depth) {
  const Window& w = *job.choice.window;
  const int64_t in_plane = s.in_h * s.in_w * s.in_c, out_plane = s.out_h * s.out_w * s.out_c;
  T* y = job.y + (image * w.out[0] + depth) * out_plane;
  kernels::ConvEpilogue<T> epilogue = job.epilogue;
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

template <typename T>
void run_planes(const ConvJob<T>& job) {
  ConvShape s = job.choice.shape;
  if (job.choice.window == nullptr) return run_plane(job, s, job.x, job.packed, job.y, job.epilogue);
  const Window& w = *job.choice.window;
  s.batch = 1;
  for (int64_t image = 0; image < w.batch; ++image) {
    for (int64_t depth = 0; depth < w.out[0]; ++depth) run_depth(job, s, image, depth);
  }
}

template <typename T>
const T* data_of(const RunContext& c, size_t input) {
  return c.has_input(input) ? c.inputs[input].as<T>() : nullptr;
}

template <typename T>
void run_fast(const RunContext& c, const ConvChoice& choice) {
  const ConvShape& s = choice.shape;
  ConvJob<T> job{choice,
                 c.inputs[kConvX].as<T>(),
                 c.inputs[kConvW].data,
                 c.outputs[0].as<T>(),
                 {},
                 c.scratch + choice.working_at,
                 c.threads};
  job.image = c.scratch_as<BFloat16>(choice.x_at);
  job.epilogue = {data_of<T>(c, kConvBias), data_of<T>(c, kConvAddend), c.attrs<ConvAttrs>().activation};
  if (!choice.packed) {
    pack_conv_weights<T>(choice, job.packed, data_of<T>(c, kConvScale), c.scratch + choice.packed_at);
    job.packed = c.scratch + choice.packed_at;
  }
  if (choice.channels_last) return run_planes(job);
  T *x_copy = c.scratch_as<T>(choice.x_at), *y_copy = c.scratch_as<T>(choice.y_at);
  to_channels_last(s.batch, s.in_c, choice.in_pixels, job.x, x_copy, c.threads);
  if (job.epilogue.addend != nullptr) {
    to_channels_last(s.batch, s.out_c, choice.out_pixels, job.epilogue.addend, y_copy, c.threads);
    job.epilogue.addend = y_copy;
  }
  job.x = x_copy;
  job.y = y_copy;
  run_planes(job);
  to_channels_first(s.batch, s.out_c, choice.out_pixels, y_copy, c.outputs[0].as<T>(), c.threads);
}

// 16-bit planes that add up do so in float: all operands are widened, the result is rounded once.
template <typename T>
class WidenedConv {
 public:
  WidenedConv(const RunContext& c, const ConvChoice& choice)
      : c_(c), choice_(choice), wide_(c.scratch_as<float>(choice.wide_at)) {}

  void run() {
    const ConvShape& s = choice_.shape;
    float *x = c_.scratch_as<float>(choice_.x_at), *y = c_.scratch_as<float>(choice_.y_at);
    image_to(kConvX, s.in_c, choice_.in_pixels, x);
    ConvJob<float> job{choice_,   x, c_.inputs[kConvW].data, y, {}, c_.scratch + choice_.working_at,
                       c_.threads};
    job.epilogue = {widened(kConvBias), nullptr, c_.attrs<ConvAttrs>().activation};
    if (c_.has_input(kConvAddend)) {
      image_to(kConvAddend, s.out_c, choice_.out_pixels, y);
      job.epilogue.addend = y;
    }
    if (!choice_.packed) {
      const float* scale = widened(kConvScale);
      pack_conv_weights<float>(choice_, widened(kConvW), scale, c_.scratch + choice_.packed_at);
      job.packed = c_.scratch + choice_.packed_at;
    }
    run_planes(job);
    T* out = c_.outputs[0].as<T>();
    if (choice_.channels_last) return kernels::narrow(y, out, c_.outputs[0].elements());
    for (int64_t n = 0; n < s.batch; ++n) image_from(y, n, s.out_c, choice_.out_pixels, out);
  }

 private:
  const float* widened(size_t input) {
    if (!c_.has_input(input)) return nullptr;
    float* to = wide_;
    const int64_t count = c_.inputs[input].elements();
    kernels::widen(c_.inputs[input].as<T>(), to, count);
    wide_ += (count + 15) / 16 * 16;
    return to;
  }
  void image_to(size_t input, int64_t channels, int64_t pixels, float* to) const {
    const T* from = c_.inputs[input].as<T>();
    if (choice_.channels_last) return kernels::widen(from, to, c_.inputs[input].elements());
    for (int64_t n = 0; n < choice_.shape.batch; ++n) {
      for (int64_t k = 0; k < channels; ++k) {
        for (int64_t p = 0; p < pixels; ++p)
          to[(n * pixels + p) * channels + k] = static_cast<float>(from[(n * channels + k) * pixels + p]);
      }
    }
  }
  static void image_from(const float* y, int64_t n, int64_t channels, int64_t pixels, T* to) {
    for (int64_t k = 0; k < channels; ++k) {
      for (int64_t p = 0; p < pixels; ++p)
        to[(n * channels + k) * pixels + p] = T(y[(n * pixels + p) * channels + k]);
    }
  }

  const RunContext& c_;
  const ConvChoice& choice_;
  float* wide_;
};

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
  visit_float(c.inputs[kConvX].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (choice.kernel == ConvKernel::kReference) return run_reference<T>(c, *choice.window);
    if constexpr (kernels::kIsHalf<T>) {
      if (choice.widened) return WidenedConv<T>(c, choice).run();
    }
    run_fast<T>(c, choice);
  });
}

}  // namespace plimsoll
