#include "ops/window.h"

#include <algorithm>

#include "ops/channels_last.h"

namespace plimsoll {
namespace {

constexpr int64_t kMaxNumber = INT32_MAX;

std::span<const int64_t> read_list(AttrContext& c, std::string_view name, int64_t least) {
  const std::span<const int64_t> list = c.integers(name);
  for (int64_t value : list) {
    if (value < least || value > kMaxNumber)
      c.reject("attribute '{}': expected values from {} to {}, found {}", name, least, kMaxNumber, value);
  }
  return list;
}

void check_length(const NodeContext& c, const char* name, size_t length, size_t expected) {
  if (length != 0 && length != expected)
    c.reject("attribute '{}': expected {} values, found {}", name, expected, length);
}

}  // namespace

void read_window_lists(AttrContext& c, WindowAttrs& window) {
  window.kernel = read_list(c, "kernel_shape", 1);
  window.strides = read_list(c, "strides", 1);
  window.dilations = read_list(c, "dilations", 1);
  window.pads = read_list(c, "pads", 0);
}

void read_window(AttrContext& c, WindowAttrs& window) {
  read_window_lists(c, window);
  window.channels_last = read_channels_last(c);
  const std::string_view name = c.text("auto_pad", "NOTSET");
  if (name == "VALID") {
    window.auto_pad = AutoPad::kValid;
  } else if (name == "SAME_UPPER") {
    window.auto_pad = AutoPad::kSameUpper;
  } else if (name == "SAME_LOWER") {
    window.auto_pad = AutoPad::kSameLower;
  } else if (name != "NOTSET" && !name.empty()) {
    c.reject("attribute 'auto_pad': expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, found '{}'", name);
  }
}

void check_window(const NodeContext& c, const WindowAttrs& window, size_t rank) {
  if (rank < 3 || rank > 2 + kMaxSpatial)
    c.reject("input 0: expected a rank from 3 to {}, found {}", 2 + kMaxSpatial, rank);
  check_length(c, "kernel_shape", window.kernel.size(), rank - 2);
  check_length(c, "strides", window.strides.size(), rank - 2);
  check_length(c, "dilations", window.dilations.size(), rank - 2);
  check_length(c, "pads", window.pads.size(), 2 * (rank - 2));
}

Dim window_output(const WindowAttrs& w, size_t i, Dim in, Dim kernel, bool ceil_mode) {
  const Dim stride = w.stride(i);
  if (w.is_same()) return ceil_div(in, stride);
  const Dim extent = (kernel - 1) * w.dilation(i) + 1;
  const Dim begin = w.pad_begin(i);
  const Dim room = in + begin + w.pad_end(i) - extent;
  if (!ceil_mode) return floor_div(room, stride) + 1;
  // A window that would start in the padding behind the input does not count.
  return min(ceil_div(room, stride) + 1, floor_div(in + begin - 1, stride) + 1);
}

int64_t window_begin(const WindowAttrs& w, size_t i, int64_t in, int64_t kernel, int64_t out) {
  if (!w.is_same()) return w.pad_begin(i);
  const int64_t total = std::max<int64_t>(0, (out - 1) * w.stride(i) + (kernel - 1) * w.dilation(i) + 1 - in);
  return w.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
}

Window make_window(const WindowAttrs& w, std::span<const int64_t> x, std::span<const int64_t> y,
                   std::span<const int64_t> kernel) {
  Window window;
  window.rank = x.size() - 2;
  window.channels_last = w.channels_last;
  window.batch = x[0];
  window.channels = x[channel_axis(w, x.size())];
  for (size_t i = 0; i < window.rank; ++i) {
    window.in[i] = x[spatial_axis(w, i)];
    window.out[i] = y[spatial_axis(w, i)];
    window.kernel[i] = kernel[i];
    window.stride[i] = w.stride(i);
    window.dilation[i] = w.dilation(i);
    window.begin[i] = window_begin(w, i, window.in[i], kernel[i], window.out[i]);
    const int64_t total = (window.out[i] - 1) * window.stride[i] + (kernel[i] - 1) * window.dilation[i] + 1;
    window.end[i] = w.is_same() ? std::max<int64_t>(0, total - window.in[i]) - window.begin[i] : w.pad_end(i);
  }
  return window;
}

void region_window(RegionContext& c, const WindowAttrs& w, std::span<const int64_t> kernel,
                   bool counts_padding) {
  const size_t rank = kernel.size();
  std::vector<int64_t> pads(2 * rank);
  c.runs_on_parts = true;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = spatial_axis(w, i);
    const int64_t in = c.size(0, axis), out = c.output(0).type.dims[axis].value();
    const int64_t begin = window_begin(w, i, in, kernel[i], out);
    const int64_t extent = (kernel[i] - 1) * w.dilation(i) + 1;
    const int64_t first = c.wanted(axis).begin * w.stride(i) - begin;
    const int64_t last = (c.wanted(axis).end - 1) * w.stride(i) - begin + extent;
    c.needs[0][axis] = {std::clamp<int64_t>(first, 0, in), std::clamp<int64_t>(last, 0, in)};
    pads[i] = std::max<int64_t>(0, -first);
    pads[rank + i] = std::max<int64_t>(0, last - in);
    // All in the padding, or a last window that ends behind it (ceil_mode): pads cannot say so.
    const bool behind = !w.is_same() && last > in + w.pad_end(i);
    if (c.needs[0][axis].size() == 0 || (counts_padding && behind)) c.runs_on_parts = false;
  }
  c.needs[0][0] = c.wanted(0);
  c.changes.set("pads", pads);
  c.changes.remove("auto_pad");
}

SpatialStrides strides_of(size_t rank, int64_t channels, const Spatial& sizes, bool channels_last) {
  SpatialStrides s;
  int64_t stride = channels_last ? channels : 1;
  for (size_t i = rank; i-- > 0;) {
    s.spatial[i] = stride;
    stride *= sizes[i];
  }
  s.channel = channels_last ? 1 : stride;
  s.batch = channels_last ? stride : stride * channels;
  return s;
}

}  // namespace plimsoll
