// Convolutions of any rank, layout and float type, for what no fast kernel covers.
#pragma once

#include <algorithm>

#include "kernels/parallel.h"
#include "kernels/storage.h"
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
Accumulator<T> finish_sum(const ConvOperands<T>& o, Accumulator<T> sum, int64_t channel, int64_t at) {
  if (o.scale != nullptr) sum *= static_cast<Accumulator<T>>(o.scale[channel]);
  if (o.bias != nullptr) sum += static_cast<Accumulator<T>>(o.bias[channel]);
  if (o.addend != nullptr) sum += static_cast<Accumulator<T>>(o.addend[at]);
  if (o.activation.kind != kernels::ActivationKind::kNone) sum = apply_activation(o.activation, sum);
  return sum;
}

// By lines of outputs along the last dimension, a few channels together: a line of inputs is fetched once for
// all of them. kTransposed: ConvTranspose, whose weights are (in channels, out channels / groups, taps...).
template <typename T, bool kTransposed>
class ConvLines {
 public:
  using A = Accumulator<T>;
  ConvLines(const Window& w, const ConvOperands<T>& o)
      : w_(w),
        o_(o),
        last_(w.rank - 1),
        in_(strides_of(w.rank, w.channels, w.in, w.channels_last)),
        out_(strides_of(w.rank, o.out_channels, w.out, w.channels_last)),
        in_c_(w.channels / o.groups),
        out_c_(o.out_channels / o.groups),
        taps_(volume(w.rank, w.kernel)),
        phases_(kTransposed && w.stride[last_] < kLine ? w.stride[last_] : 1) {}

  void run(int threads) const {
    if (volume(w_.rank, w_.out) == 0) return;
    const int64_t lines = volume(last_, w_.out), parts = ceil_div(out_c_, kChannels);
    kernels::parallel_for(threads, w_.batch * o_.groups * parts * lines, [&](int64_t task) {
      Spatial at{};
      int64_t rest = task % lines;
      for (size_t i = last_; i-- > 0; rest /= w_.out[i]) at[i] = rest % w_.out[i];
      task /= lines;
      const int64_t part = task % parts, group = task / parts % o_.groups, image = task / parts / o_.groups;
      for (int64_t start = 0; start < w_.out[last_]; start += kLine) run_line(image, group, part, at, start);
    });
  }

 private:
  static constexpr int64_t kChannels = 8, kInputs = 32, kLine = 128,
                           kFetched = 512;  // elements: at least a line, and kInputs * kChannels
  struct Sums {
    A of[kChannels][2 * kLine];
  };
  // Inputs [first, first + count) of a line, every step_in-th, go to sums `to` and following.
  struct Meeting {
    int64_t first, step_in, count, to;
  };

  void run_line(int64_t image, int64_t group, int64_t part, const Spatial& at, int64_t start) const {
    const int64_t first = group * out_c_ + part * kChannels,
                  count = std::min(kChannels, out_c_ - part * kChannels);
    const int64_t size = std::min(kLine, w_.out[last_] - start);
    Sums sums;
    A weights[kInputs * kChannels];
    for (int64_t m = 0; m < count; ++m) std::fill_n(sums.of[m], phases_ * ceil_div(size, phases_), A{0});
    Spatial tap{};
    for (int64_t t = 0; t < taps_; ++t, next_position(w_.rank, w_.kernel, tap)) {
      int64_t from = image * in_.batch + group * in_c_ * in_.channel;
      const Meeting meeting = meeting_of(tap[last_], start, size);
      if (meeting.count <= 0 || !add_outer_places(at, tap, from)) continue;
      from += meeting.first * in_.spatial[last_];
      const int64_t together = std::clamp<int64_t>(kFetched / meeting.count, 1, kInputs);
      for (int64_t c = 0; c < in_c_; c += together) {
        const int64_t inputs = std::min(together, in_c_ - c);
        fetch_weights(group, first, count, c, inputs, t, weights);
        A fetched[kFetched];
        fetch_lines(o_.x + from + c * in_.channel, meeting, inputs, fetched);
        for (int64_t i = 0; i < inputs; ++i) {
          for (int64_t m = 0; m < count; ++m)
            add_line(fetched + i * meeting.count, weights[i * count + m], meeting, sums.of[m]);
        }
      }
    }
    int64_t to = image * out_.batch + start * out_.spatial[last_];
    for (size_t i = 0; i < last_; ++i) to += at[i] * out_.spatial[i];
    A finished[kChannels * kLine];
    for (int64_t m = 0; m < count; ++m) {
      const int64_t line = to + (first + m) * out_.channel;
      for (int64_t phase = 0; phase < std::min(phases_, size); ++phase) {
        const A* sum = sums.of[m] + place_of(phase, size);
        for (int64_t i = phase; i < size; i += phases_)
          finished[m * size + i] = finish_sum(o_, *sum++, first + m, line + i * out_.spatial[last_]);
      }
    }
    store_lines(finished, count, size, o_.y + to + first * out_.channel);
  }

  // Those of one tap for input channels `in` of the group and the next ones, from outputs `first` of all on.
  void fetch_weights(int64_t group, int64_t first, int64_t count, int64_t in, int64_t inputs, int64_t tap,
                     A* weights) const {
    const int64_t next_in = kTransposed ? out_c_ * taps_ : taps_,
                  next_out = kTransposed ? taps_ : in_c_ * taps_;
    const T* from =
        o_.w + tap +
        (kTransposed ? group * in_c_ * next_in + (first - group * out_c_) * next_out : first * next_out) +
        in * next_in;
    fetch(from, next_in, inputs, next_out, count, weights);
  }

  // The line's inputs of `inputs` channels, one channel after the other.
  void fetch_lines(const T* x, const Meeting& meeting, int64_t inputs, A* lines) const {
    fetch(x, in_.channel, inputs, meeting.step_in * in_.spatial[last_], meeting.count, lines);
  }

  Meeting meeting_of(int64_t tap, int64_t start, int64_t size) const {
    const int64_t stride = w_.stride[last_], in = w_.in[last_];
    const int64_t shift = tap * w_.dilation[last_] - w_.begin[last_];
    if constexpr (kTransposed) {  // input i goes to output i * stride + shift
      const int64_t first = std::max<int64_t>(0, ceil_div(std::max<int64_t>(0, start - shift), stride));
      const int64_t end = start + size - shift;
      const int64_t last = end <= 0 ? 0 : std::min(in, ceil_div(end, stride));
      return {first, 1, last - first, place_of(first * stride + shift - start, size)};
    } else {  // output j needs input j * stride + shift
      const int64_t first = std::max(start, shift >= 0 ? 0 : ceil_div(-shift, stride));
      const int64_t last = std::min(start + size, shift >= in ? 0 : (in - 1 - shift) / stride + 1);
      return {first * stride + shift, stride, last - first, first - start};
    }
  }

  // False if the tap lies outside along a dimension before the last.
  bool add_outer_places(const Spatial& at, const Spatial& tap, int64_t& from) const {
    for (size_t i = 0; i < last_; ++i) {
      int64_t place = at[i] * w_.stride[i] - w_.begin[i] + tap[i] * w_.dilation[i];
      if constexpr (kTransposed) {
        const int64_t scaled = at[i] + w_.begin[i] - tap[i] * w_.dilation[i];
        if (scaled < 0 || scaled % w_.stride[i] != 0) return false;
        place = scaled / w_.stride[i];
      }
      if (place < 0 || place >= w_.in[i]) return false;
      from += place * in_.spatial[i];
    }
    return true;
  }

  // Rows of elements that lie apart, side by side and as what sums are made of: halves are widened all at
  // once, because each call costs as much as a few elements.
  static void fetch(const T* x, int64_t next_row, int64_t rows, int64_t step, int64_t count, A* found) {
    if constexpr (kernels::kIsHalf<T>) {
      T halves[kFetched];
      gather(x, next_row, rows, step, count, halves);
      kernels::widen(halves, found, rows * count);
    } else {
      gather(x, next_row, rows, step, count, found);
    }
  }
  static void gather(const T* x, int64_t next_row, int64_t rows, int64_t step, int64_t count, T* found) {
    for (int64_t row = 0; row < rows; ++row, x += next_row, found += count) {
      if (step == 1) {
        std::copy_n(x, count, found);
      } else {
        for (int64_t i = 0; i < count; ++i) found[i] = x[i * step];
      }
    }
  }
  void store_lines(const A* lines, int64_t channels, int64_t count, T* y) const {
    const T* from = nullptr;
    T narrowed[kChannels * kLine];
    if constexpr (kernels::kIsHalf<T>) {
      kernels::narrow(lines, narrowed, channels * count);
      from = narrowed;
    } else {
      from = lines;
    }
    const int64_t step = out_.spatial[last_];
    for (int64_t m = 0; m < channels; ++m, y += out_.channel, from += count) {
      for (int64_t i = 0; i < count; ++i) y[i * step] = from[i];
    }
  }
  static void add_line(const A* __restrict line, A weight, const Meeting& m, A* __restrict sums) {
    A* __restrict to = sums + m.to;
    for (int64_t i = 0; i < m.count; ++i) to[i] += weight * line[i];
  }

  // Where the sum of output i of a line is: outputs that one input after the other meets lie side by side.
  int64_t place_of(int64_t i, int64_t size) const {
    return phases_ == 1 ? i : i % phases_ * ceil_div(size, phases_) + i / phases_;
  }

  const Window& w_;
  const ConvOperands<T>& o_;
  const size_t last_;
  const SpatialStrides in_, out_;
  const int64_t in_c_, out_c_, taps_;
  const int64_t
      phases_;  // a transposed line's stride; 1 where it is so long that each tap has one input at most
};

template <typename T>
void conv_reference(const Window& w, const ConvOperands<T>& o, int threads) {
  ConvLines<T, false>(w, o).run(threads);
}

template <typename T>
void conv_transpose_reference(const Window& w, const ConvOperands<T>& o, int threads) {
  ConvLines<T, true>(w, o).run(threads);
}

}  // namespace plimsoll
