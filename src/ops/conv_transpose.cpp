#include "ops/conv_transpose.h"

#include <algorithm>

#include "ops/conv_common.h"
#include "ops/conv_gradient.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<TransposeAttrs>();
  read_window(c, a->window);
  a->groups = c.integer("group", 1);
  if (a->groups < 1 || a->groups > INT32_MAX) c.reject("attribute 'group': found {}", a->groups);
  a->output_padding = c.integers("output_padding");
  a->output_shape = c.integers("output_shape");
  for (std::span<const int64_t> list : {a->output_padding, a->output_shape}) {
    for (int64_t value : list) {
      if (value < 0 || value > INT32_MAX) c.reject("output_padding or output_shape: found {}", value);
    }
  }
  return a;
}

Dim output_size(const TransposeAttrs& a, size_t i, size_t spatial, Dim in, Dim kernel) {
  // Some writers give the whole shape, batch and channels included.
  if (!a.output_shape.empty()) return a.output_shape[a.output_shape.size() - spatial + i];
  if (a.window.is_same()) return in * a.window.stride(i);
  return full_transpose_output(a, i, in, kernel) - a.window.pad_begin(i) - a.window.pad_end(i);
}

void check_list(const NodeContext& c, const char* name, size_t length, size_t spatial, bool whole_shape) {
  if (length != 0 && length != spatial && !(whole_shape && length == spatial + 2))
    c.reject("attribute '{}': expected {} values, found {}", name, spatial, length);
}

// All that packing reads: it comes before anything is known of X.
void check_weights(InferContext& c, const TransposeAttrs& a) {
  c.expect_rank(1, 3, 2 + kMaxSpatial);
  check_window(c, a.window, c.rank(1));
  const std::span<const Dim> w = c.dims(1);
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} input channels do not divide into {} groups", w[0].value(), a.groups);
  for (size_t i = 0; i + 2 < w.size(); ++i) {
    if (w[2 + i].is_constant() && (w[2 + i].value() < 1 || w[2 + i].value() > INT32_MAX))
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
    if (!a.window.kernel.empty() && w[2 + i].is_constant() && w[2 + i].value() != a.window.kernel[i])
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               a.window.kernel[i], i, to_string(w));
  }
}

void infer(InferContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  if (c.has_input(2)) c.expect_same_type(0, 2);
  if (c.ranked(0)) check_window(c, a.window, c.rank(0));
  if (c.ranked(1)) check_weights(c, a);
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  const size_t rank = c.rank(0);
  check_list(c, "output_padding", a.output_padding.size(), rank - 2, false);
  check_list(c, "output_shape", a.output_shape.size(), rank - 2, true);
  c.expect_rank(1, rank, rank);
  const std::span<const Dim> x = c.dims(0), w = c.dims(1);
  const Dim in_channels = x[channel_axis(a.window, rank)];
  if (in_channels.is_constant() && w[0].is_constant() && !(in_channels == w[0]))
    c.reject("expected {} input channels, found {}", w[0].value(), in_channels.value());
  std::vector<Dim> y(rank);
  y[0] = x[0];
  y[channel_axis(a.window, rank)] = w[1] * a.groups;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    y[axis] = output_size(a, i, rank - 2, x[axis], w[2 + i]);
  }
  if (c.has_input(2)) {
    c.expect_rank(2, 1, 1);
    const Dim channels = y[channel_axis(a.window, rank)];
    if (c.ranked(2) && c.dims(2)[0].is_constant() && channels.is_constant() && !(c.dims(2)[0] == channels))
      c.reject("bias: expected {} channels, found {}", channels.value(), c.dims(2)[0].value());
  }
  c.set_output(0, c.type(0), y);
}

}  // namespace

Cost cost_conv_transpose(const NodeContext& c) {
  const auto x = constant_dims(c.input(0)), w = constant_dims(c.input(1));
  if (!x || !w) return {};
  int64_t operations = 2;
  for (int64_t d : *x) operations = checked_mul(operations, d);
  for (size_t i = 1; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  return {operations, tensor_bytes(c)};
}

Dim full_transpose_output(const TransposeAttrs& a, size_t i, Dim in, Dim kernel) {
  return (in - 1) * a.window.stride(i) + (kernel - 1) * a.window.dilation(i) + 1 + a.extra(i);
}

namespace {

// What the operator cuts off before and behind, as padding of a Conv.
std::vector<int64_t> conv_pads(const GradientContext& c, const TransposeAttrs& a) {
  const size_t spatial = c.rank(0) - 2;
  std::vector<int64_t> pads(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    pads[i] = a.window.pad_begin(i), pads[spatial + i] = a.window.pad_end(i);
    if (a.output_shape.empty() && !a.window.is_same()) continue;
    const Dim full = full_transpose_output(a, i, c.dims(0)[2 + i], c.dims(1)[2 + i]);
    const Dim cut = full - c.output(0).type.dims[2 + i];
    if (!cut.is_constant()) c.reject("its gradient needs to know dimension {} of its input", 2 + i);
    const int64_t total = std::max<int64_t>(0, cut.value());
    pads[i] = a.window.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
    pads[spatial + i] = total - pads[i];
  }
  return pads;
}

// Of X a Conv with the same window, of W the weight gradient of that Conv.
void gradient(GradientContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  Edge* dy = c.gradient();
  if (!c.ranked(0) || !c.ranked(1)) c.reject("its gradient needs the ranks of its inputs");
  if (c.wants(2)) c.set(2, sum_of_channels(c, dy));
  if (!c.wants(0) && !c.wants(1)) return;
  const std::vector<int64_t> pads = conv_pads(c, a);
  AttributeList attributes = c.attributes();
  attributes.set("group", a.groups).set("pads", std::span<const int64_t>(pads));
  if (!a.window.strides.empty()) attributes.set("strides", a.window.strides);
  if (!a.window.dilations.empty()) attributes.set("dilations", a.window.dilations);
  if (c.wants(0)) c.set(0, c.op("Conv", {dy, c.in(1)}, attributes));
  if (c.wants(1)) {
    attributes.set("kernel_shape", std::span<const int64_t>(kernel_sizes(c)));
    c.set(1, c.own_op("ConvWeightGradient", {dy, c.in(0)}, attributes));
  }
}

}  // namespace

extern const OpDef op_conv_transpose = {
    .name = "ConvTranspose",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select_conv_transpose,
    .pack = pack_conv_transpose,
    .run = run_conv_transpose,
    .cost = cost_conv_transpose,
    .layout = layout_windowed,
    .channels_last = true,
    .gradient = gradient,
};

}  // namespace plimsoll
