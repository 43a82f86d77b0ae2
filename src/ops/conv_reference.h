// Convolutions of any rank and float type straight from the definition, for what no fast kernel covers.
#pragma once

#include "kernels/parallel.h"
#include "ops/activation_attr.h"
#include "ops/window.h"

namespace plimsoll {

template <typename T>
struct ConvOperands {
  const T* x = nullptr;
  const T* w = nullptr;       // ONNX's order
  const T* bias = nullptr;    // these three may be null
  const T* addend = nullptr;  // laid out as y
  const T* scale = nullptr;   // per output channel, of the weights
  T* y = nullptr;
  int64_t groups = 1, out_channels = 0;
  kernels::Activation activation;
};

template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
void finish_element(const ConvOperands<T>& o, Accumulator<T> sum, int64_t channel, int64_t at) {
  if (o.scale != nullptr) sum *= static_cast<Accumulator<T>>(o.scale[channel]);
  if (o.bias != nullptr) sum += static_cast<Accumulator<T>>(o.bias[channel]);
  if (o.addend != nullptr) sum += static_cast<Accumulator<T>>(o.addend[at]);
  if (o.activation.kind != kernels::ActivationKind::kNone) sum = apply_activation(o.activation, sum);
  o.y[at] = static_cast<T>(sum);
}

inline int64_t offset_of(size_t rank, const Spatial& strides, const Spatial& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) offset += strides[i] * at[i];
  return offset;
}

// Calls f(output channel, position) for every output element of image n, in parallel over channels.
template <typename F>
void for_each_output(const Window& w, int64_t channels, int threads, F&& f) {
  if (volume(w.rank, w.out) == 0) return;
  kernels::parallel_for(threads, w.batch * channels, [&](int64_t task) {
    Spatial at{};
    do f(task / channels, task % channels, at);
    while (next_position(w.rank, w.out, at));
  });
}

template <typename T>
void conv_reference(const Window& w, const ConvOperands<T>& o, int threads) {
  const SpatialStrides xs = strides_of(w.rank, w.channels, w.in, w.channels_last);
  const SpatialStrides ys = strides_of(w.rank, o.out_channels, w.out, w.channels_last);
  const int64_t in_c = w.channels / o.groups, out_c = o.out_channels / o.groups,
                taps = volume(w.rank, w.kernel);
  for_each_output(w, o.out_channels, threads, [&](int64_t n, int64_t channel, const Spatial& at) {
    Accumulator<T> sum = 0;
    Spatial tap{};
    for (int64_t t = 0; t < taps; ++t, next_position(w.rank, w.kernel, tap)) {
      int64_t from = n * xs.batch + channel / out_c * in_c * xs.channel;
      bool inside = true;
      for (size_t i = 0; i < w.rank; ++i) {
        const int64_t in = at[i] * w.stride[i] - w.begin[i] + tap[i] * w.dilation[i];
        inside &= in >= 0 && in < w.in[i];
        from += in * xs.spatial[i];
      }
      if (!inside) continue;
      for (int64_t c = 0; c < in_c; ++c)
        sum += static_cast<Accumulator<T>>(o.x[from + c * xs.channel]) *
               static_cast<Accumulator<T>>(o.w[(channel * in_c + c) * taps + t]);
    }
    finish_element(o, sum, channel, n * ys.batch + channel * ys.channel + offset_of(w.rank, ys.spatial, at));
  });
}

// Weights are (in channels, out channels / groups, taps...).
template <typename T>
void conv_transpose_reference(const Window& w, const ConvOperands<T>& o, int threads) {
  const SpatialStrides xs = strides_of(w.rank, w.channels, w.in, w.channels_last);
  const SpatialStrides ys = strides_of(w.rank, o.out_channels, w.out, w.channels_last);
  const int64_t in_c = w.channels / o.groups, out_c = o.out_channels / o.groups,
                taps = volume(w.rank, w.kernel);
  for_each_output(w, o.out_channels, threads, [&](int64_t n, int64_t channel, const Spatial& at) {
    Accumulator<T> sum = 0;
    Spatial tap{};
    const int64_t first = channel / out_c * in_c;
    for (int64_t t = 0; t < taps; ++t, next_position(w.rank, w.kernel, tap)) {
      int64_t from = n * xs.batch;
      bool inside = true;
      for (size_t i = 0; i < w.rank; ++i) {
        const int64_t scaled = at[i] + w.begin[i] - tap[i] * w.dilation[i];
        inside &= scaled >= 0 && scaled % w.stride[i] == 0 && scaled / w.stride[i] < w.in[i];
        from += scaled / w.stride[i] * xs.spatial[i];
      }
      if (!inside) continue;
      for (int64_t c = first; c < first + in_c; ++c)
        sum += static_cast<Accumulator<T>>(o.x[from + c * xs.channel]) *
               static_cast<Accumulator<T>>(o.w[(c * out_c + channel % out_c) * taps + t]);
    }
    finish_element(o, sum, channel, n * ys.batch + channel * ys.channel + offset_of(w.rank, ys.spatial, at));
  });
}

}  // namespace plimsoll
