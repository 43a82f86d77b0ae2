#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/copy.h"
#include "ops/integer_conv.h"
#include "ops/integer_product.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

Spatial position_of(const Window& w, int64_t pixel) {
  Spatial at{};
  for (size_t i = w.rank; i-- > 0;) {
    at[i] = pixel % w.out[i];
    pixel /= w.out[i];
  }
  return at;
}

// Calls f(tap, input pixel) for every tap of the kernel at an output position; -1 where it is outside.
template <typename F>
void for_each_tap_of(const Window& w, const Spatial& at, F&& f) {
  Spatial tap{};
  int64_t number = 0;
  do {
    int64_t pixel = 0;
    bool inside = true;
    for (size_t i = 0; i < w.rank && inside; ++i) {
      const int64_t place = at[i] * w.stride[i] - w.begin[i] + tap[i] * w.dilation[i];
      inside = place >= 0 && place < w.in[i];
      pixel = pixel * w.in[i] + place;
    }
    f(number++, inside ? pixel : -1);
  } while (next_position(w.rank, w.kernel, tap));
}

// A few bytes without a call; never beyond them.
inline void copy_bytes(uint8_t* to, const uint8_t* from, size_t count) {
  const auto ends = [&](auto word) {
    auto last = word;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(&last, from + count - sizeof word, sizeof word);
    std::memcpy(to, &word, sizeof word);
    std::memcpy(to + count - sizeof word, &last, sizeof word);
  };
  if (count > 32) {
    std::memcpy(to, from, count);
  } else if (count >= 16) {
    ends(std::array<uint64_t, 2>{});
  } else if (count >= 8) {
    ends(uint64_t{});
  } else if (count >= 4) {
    ends(uint32_t{});
  } else {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
  }
}

// `width` bytes without a call.
template <size_t width>
inline void copy_exactly(uint8_t* to, const uint8_t* from) {
  std::array<uint64_t, width / 8> words;
  std::memcpy(&words, from, width);
  std::memcpy(to, &words, width);
}

// The rows of the product for one group: what the kernel sees from each output pixel.
struct PatchReader {
  const Window* window;
  const uint8_t* x;  // channels last, at the group's first channel
  int64_t pixel_stride, channels;
  uint8_t padding;
  bool is_dense;  // one group, and neighbouring taps see neighbouring pixels

  static void read(const void* context, int64_t row, int64_t count, uint8_t* to, int64_t stride) {
    const auto& self = *static_cast<const PatchReader*>(context);
    if (self.is_dense && self.window->rank == 2) return self.read_planes(row, count, to, stride);
    for (int64_t i = 0; i < count; ++i, to += stride)
      self.is_dense ? self.read_lines(row + i, to) : self.read_taps(row + i, to);
  }

  void read_taps(int64_t row, uint8_t* to) const {
    const auto count = static_cast<size_t>(channels);
    for_each_tap_of(*window, position_of(*window, row), [&](int64_t, int64_t pixel) {
      if (pixel >= 0) {
        std::memcpy(to, x + pixel * pixel_stride, count);
      } else {
        std::memset(to, padding, count);
      }
      to += channels;
    });
  }

  // What is most common: windows of a plane, most of the time inside of it.
  void read_planes(int64_t row, int64_t count, uint8_t* to, int64_t stride) const {
    const int64_t line = window->kernel[1] * channels, before = (window->kernel[0] - 1) * line;
    if (line <= 16 && before + 16 <= stride) {
      read_planes_by(row, count, to, stride, 16,
                     [](uint8_t* t, const uint8_t* s) { copy_exactly<16>(t, s); });
    } else if (line <= 32 && before + 32 <= stride) {
      read_planes_by(row, count, to, stride, 32,
                     [](uint8_t* t, const uint8_t* s) { copy_exactly<32>(t, s); });
    } else {
      const auto bytes = static_cast<size_t>(line);
      read_planes_by(row, count, to, stride, line,
                     [=](uint8_t* t, const uint8_t* s) { copy_bytes(t, s, bytes); });
    }
  }

  // copy(to, from) moves `width` bytes, which may be more than a line of the kernel.
  template <typename Copy>
  void read_planes_by(int64_t row, int64_t count, uint8_t* to, int64_t stride, int64_t width,
                      const Copy& copy) const {
    const Window w = *window;
    const int64_t line = w.kernel[1] * channels, step = w.dilation[0] * w.in[1] * pixel_stride;
    const int64_t below = (w.kernel[0] - 1) * w.dilation[0], last = w.in[0] * w.in[1] * pixel_stride - width;
    const int64_t lines = w.kernel[0], most_x = w.in[1] - w.kernel[1];
    int64_t out_y = row / w.out[1], out_x = row % w.out[1];
    for (int64_t i = 0; i < count; out_x = 0, ++out_y) {
      const int64_t y0 = out_y * w.stride[0] - w.begin[0];
      const bool is_inside = y0 >= 0 && y0 + below < w.in[0];
      const int64_t end = std::min(count, i + w.out[1] - out_x);
      for (int64_t x0 = out_x * w.stride[1] - w.begin[1]; i < end; ++i, x0 += w.stride[1], to += stride) {
        const int64_t at = (y0 * w.in[1] + x0) * pixel_stride;
        if (!is_inside || x0 < 0 || x0 > most_x || at + (lines - 1) * step > last) {
          read_lines(row + i, to);
          continue;
        }
        const uint8_t* from = x + at;
        uint8_t* own = to;
        for (int64_t k = 0; k < lines; ++k, from += step, own += line) copy(own, from);
      }
    }
  }

  // The taps of one line of the kernel lie side by side: what is inside is one copy.
  void read_lines(int64_t row, uint8_t* to) const {
    const Window& w = *window;
    const size_t last = w.rank - 1;
    const Spatial at = position_of(w, row);
    const TapRange range = tap_range(w, last, at[last]);
    const int64_t first = at[last] * w.stride[last] - w.begin[last];
    const auto before = static_cast<size_t>(range.first * channels);
    const auto inside = static_cast<size_t>((range.last - range.first) * channels);
    const auto after = static_cast<size_t>(w.kernel[last] * channels) - before - inside;
    Spatial line{};
    do {
      int64_t pixel = 0;
      bool is_inside = true;
      for (size_t i = 0; i < last && is_inside; ++i) {
        const int64_t place = at[i] * w.stride[i] - w.begin[i] + line[i] * w.dilation[i];
        is_inside = place >= 0 && place < w.in[i];
        pixel = pixel * w.in[i] + place;
      }
      if (!is_inside) {
        std::memset(to, padding, before + inside + after);
      } else {
        if (before > 0) std::memset(to, padding, before);
        if (inside > 0)
          std::memcpy(to + before, x + (pixel * w.in[last] + first + range.first) * pixel_stride, inside);
        if (after > 0) std::memset(to + before + inside, padding, after);
      }
      to += before + inside + after;
    } while (next_position(last, w.kernel, line));
  }
};

bool is_plain(const Window& w) {
  for (size_t i = 0; i < w.rank; ++i) {
    if (w.kernel[i] != 1 || w.stride[i] != 1 || w.begin[i] != 0 || w.in[i] != w.out[i]) return false;
  }
  return true;
}

class IntegerConvRun {
 public:
  IntegerConvRun(const RunContext& c, const IntegerConvInputs& in, const IntegerConv& choice,
                 const kernels::IntGemmFinish& finish)
      : c_(c), choice_(choice), w_(*choice.window), finish_(finish), y_(c.outputs[0]), x_(c.inputs[in.x]) {
    weights_ = packed_conv_weights(c, in, choice);
    w_signed_ = c.inputs[in.w].type == ElementType::kInt8;
    width_ = element_bits(y_.type) / 8;
    in_c_ = choice.in_c * choice.groups, out_c_ = choice.out_c * choice.groups;
    if (c.has_input(in.x_zero)) x_zero_ = integer_at(x_.type, c.inputs[in.x_zero].data, 0);
    if (c.has_input(in.w_zero)) read_weight_zeros(c.inputs[in.w_zero]);
  }

  void run() const {
    const int64_t in = in_c_ * choice_.in_pixels, out = out_c_ * choice_.out_pixels * width_;
    for (int64_t n = 0; n < w_.batch; ++n) {
      const std::byte* x = x_.data + n * in;
      std::byte* y = y_.data + n * out;
      if (w_.channels_last) {
        image(x, n, y);
        continue;
      }
      swap_axes(x, c_.scratch + choice_.x_at, in_c_, choice_.in_pixels, 1);
      image(c_.scratch + choice_.x_at, n, c_.scratch + choice_.y_at);
      swap_axes(c_.scratch + choice_.y_at, y, choice_.out_pixels, out_c_, static_cast<size_t>(width_));
    }
  }

 private:
  void read_weight_zeros(const TensorView& zeros) {
    // Most often one number, or the same one for each channel: they are of 8 bits.
    const auto count = static_cast<size_t>(zeros.elements());
    if (std::memcmp(zeros.data, zeros.data + 1, count - 1) == 0) {
      w_zero_ = integer_at(zeros.type, zeros.data, 0);
      return;
    }
    int32_t* all = c_.scratch_as<int32_t>(choice_.w_zeros_at);
    for (int64_t i = 0; i < out_c_; ++i) all[i] = integer_at(zeros.type, zeros.data, i);
    w_zeros_ = all;
  }

  // [rows][columns] to [columns][rows]
  void swap_axes(const std::byte* from, std::byte* to, int64_t rows, int64_t columns, size_t width) const {
    kernels::CopyShape shape;
    shape.add(rows, columns, 1);
    shape.add(columns, 1, rows);
    kernels::strided_copy(to, from, shape, width, c_.threads);
  }

  kernels::IntGemmFinish finish_of(int64_t n, int64_t channel) const {
    kernels::IntGemmFinish f = finish_;
    f.b_signed = w_signed_;
    f.b_zero_point = w_zero_;
    f.b_zero_points = w_zeros_ != nullptr ? w_zeros_ + channel : nullptr;
    if (f.bias != nullptr) f.bias += channel;
    if (f.scales != nullptr) f.scales += channel;
    if (f.addend.data != nullptr)
      f.addend.data =
          static_cast<const std::byte*>(f.addend.data) + n * choice_.out_pixels * out_c_ + channel;
    return f;
  }

  // One, channels last.
  void image(const std::byte* x, int64_t n, std::byte* y) const {
    if (!choice_.depthwise) {
      for (int64_t g = 0; g < choice_.groups; ++g) group(x, n, g, y);
      return;
    }
    kernels::int_depthwise(choice_.plane, {x, x_.type == ElementType::kInt8, x_zero_}, weights_,
                           result_type(y_.type), finish_of(n, 0), y, c_.scratch + choice_.working_at,
                           c_.threads);
  }

  void group(const std::byte* image, int64_t n, int64_t g, std::byte* result) const {
    const auto* x = reinterpret_cast<const uint8_t*>(image) + g * choice_.in_c;
    const PatchReader reader{&w_,
                             x,
                             in_c_,
                             choice_.in_c,
                             static_cast<uint8_t>(x_zero_),
                             choice_.groups == 1 && w_.dilation[w_.rank - 1] == 1};
    kernels::IntGemmLeft a;
    a.data = x;
    a.row_stride = in_c_;
    a.is_signed = x_.type == ElementType::kInt8;
    a.zero_point = x_zero_;
    if (!is_plain(w_)) a.read_rows = PatchReader::read, a.context = &reader;
    kernels::int_gemm({choice_.out_pixels, choice_.taps * choice_.in_c, choice_.out_c}, a,
                      weights_ + g * choice_.group_bytes,
                      {result + g * choice_.out_c * width_, out_c_, result_type(y_.type)},
                      finish_of(n, g * choice_.out_c), c_.scratch + choice_.working_at, c_.threads);
  }

  const RunContext& c_;
  const IntegerConv& choice_;
  const Window& w_;
  const kernels::IntGemmFinish& finish_;
  const TensorView &y_, &x_;
  const std::byte* weights_;
  bool w_signed_ = false;
  int64_t width_ = 1, in_c_ = 0, out_c_ = 0;
  int32_t x_zero_ = 0, w_zero_ = 0;
  const int32_t* w_zeros_ = nullptr;
};

}  // namespace

void run_integer_conv(const RunContext& c, const IntegerConvInputs& in, const IntegerConv& choice,
                      const kernels::IntGemmFinish& finish) {
  if (c.outputs[0].elements() == 0) return;
  IntegerConvRun(c, in, choice, finish).run();
}

}  // namespace plimsoll
