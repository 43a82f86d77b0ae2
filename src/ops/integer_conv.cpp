#include "ops/integer_conv.h"

#include <algorithm>

#include "ops/integer_product.h"

namespace plimsoll {
namespace {

void check_weights(InferContext& c, const IntegerConvInputs& in, const ConvAttrs& a) {
  c.expect_rank(in.w, 3, 2 + kMaxSpatial);
  const std::span<const Dim> w = c.dims(in.w);
  check_window(c, a.window, w.size());
  for (size_t i = 2; i < w.size(); ++i) {
    if (!w[i].is_constant()) continue;
    if (w[i].value() < 1 || w[i].value() > INT32_MAX)
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
    if (!a.window.kernel.empty() && a.window.kernel[i - 2] != w[i].value())
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               a.window.kernel[i - 2], i - 2, to_string(w));
  }
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} output channels do not divide into {} groups", w[0].value(), a.groups);
}

void expect_count(const InferContext& c, size_t input, Dim channels) {
  if (!c.has_input(input) || !c.ranked(input)) return;
  const Dim found = product(c.dims(input));
  if (!found.is_constant() || found.value() == 1 || !channels.is_constant() || found == channels) return;
  c.reject("input {}: expected one value{}, found shape {}", input,
           channels == Dim(1) ? "" : " or one per output channel", to_string(c.dims(input)));
}

}  // namespace

void infer_integer_conv(InferContext& c, const IntegerConvInputs& in, ElementType output) {
  const auto& a = c.attrs<ConvAttrs>();
  c.expect_type(in.x, kByteTypes);
  c.expect_type(in.w, kByteTypes);
  if (c.has_input(in.x_zero)) c.expect_same_type(in.x, in.x_zero);
  if (c.has_input(in.w_zero)) c.expect_same_type(in.w, in.w_zero);
  expect_count(c, in.x_zero, 1);
  if (c.ranked(in.x)) check_window(c, a.window, c.rank(in.x));
  if (c.ranked(in.w)) check_weights(c, in, a);
  if (!c.ranked(in.x) || !c.ranked(in.w)) return c.set_unranked_output(0, output);
  const size_t rank = c.rank(in.x);
  c.expect_rank(in.w, rank, rank);
  const std::span<const Dim> x = c.dims(in.x), w = c.dims(in.w);
  expect_count(c, in.w_zero, w[0]);
  const size_t channel = channel_axis(a.window, rank);
  const Dim channels = w[1] * Dim(a.groups);
  if (x[channel].is_constant() && channels.is_constant() && !(x[channel] == channels))
    c.reject("input {}: expected {} channels, found {}", in.x, channels.value(), x[channel].value());
  std::vector<Dim> y(rank);
  y[0] = x[0], y[channel] = w[0];
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t at = spatial_axis(a.window, i);
    y[at] = window_output(a.window, i, x[at], w[2 + i], false);
  }
  c.set_output(0, output, y);
}

// ---- select, pack ------------------------------------------------------------------------------------

namespace {

Dim pixels_and_channels(std::span<const Dim> dims) {
  return product(dims.subspan(1));
}

bool is_scalar(const NodeContext& c, size_t input) {
  return !c.has_input(input) || (c.ranked(input) && product(c.dims(input)) == Dim(1));
}

// What attributes and weights tell of a line or a plane.
kernels::IntDepthwiseShape plane_of(const ConvAttrs& a, std::span<const int64_t> w) {
  kernels::IntDepthwiseShape s;
  const size_t x = w.size() - 3;
  s.channels = a.groups;
  s.kernel_w = w.back(), s.stride_w = a.window.stride(x), s.dilation_w = a.window.dilation(x);
  if (x == 0) return s;
  s.kernel_h = w[2], s.stride_h = a.window.stride(0), s.dilation_h = a.window.dilation(0);
  return s;
}

void set_sizes(const Window& w, kernels::IntDepthwiseShape& s) {
  const size_t x = w.rank - 1;
  s.in_w = w.in[x], s.out_w = w.out[x], s.pad_left = w.begin[x];
  if (x > 0) s.in_h = w.in[0], s.out_h = w.out[0], s.pad_top = w.begin[0];
}

void pack_weights(const IntegerConv& choice, const std::byte* raw, bool is_signed, std::byte* packed) {
  const int64_t k = choice.taps * choice.in_c;
  if (choice.depthwise)
    return kernels::int_depthwise_pack(choice.groups, choice.plane.kernel_h, choice.plane.kernel_w, raw,
                                       is_signed, packed);
  for (int64_t g = 0; g < choice.groups; ++g) {
    const kernels::IntGemmRight b{raw + g * choice.out_c * k, choice.taps, k, is_signed, choice.in_c, 1};
    kernels::int_gemm_pack(k, choice.out_c, b, packed + g * choice.group_bytes);
  }
}

}  // namespace

IntegerConv select_integer_conv(SelectContext& c, const IntegerConvInputs& in) {
  const auto& a = c.attrs<ConvAttrs>();
  IntegerConv choice;
  const auto w = constant_dims(c.input(in.w));
  if (!w) return choice;
  choice.groups = a.groups;
  choice.in_c = (*w)[1], choice.out_c = (*w)[0] / a.groups;
  for (size_t i = 2; i < w->size(); ++i) choice.taps = checked_mul(choice.taps, (*w)[i]);
  choice.depthwise = a.groups > 1 && choice.in_c == 1 && choice.out_c == 1 && w->size() <= 4;
  if (choice.depthwise) choice.plane = plane_of(a, *w);
  const int64_t k = checked_mul(choice.taps, choice.in_c);
  choice.group_bytes = static_cast<int64_t>(kernels::int_gemm_packed_bytes(k, choice.out_c));
  const int64_t packed_bytes = choice.depthwise
                                   ? static_cast<int64_t>(kernels::int_depthwise_packed_bytes(
                                         choice.groups, choice.plane.kernel_h, choice.plane.kernel_w))
                                   : checked_mul(choice.group_bytes, choice.groups);
  const int kernel = choice.depthwise ? kernels::int_depthwise_format() : kernels::int_gemm_format();
  const PackFormat format{
      "int_conv", {kernel, choice.groups, c.type(in.w) == ElementType::kInt8, choice.depthwise ? 1 : 0}};
  choice.packed = c.pack(in.w, format, packed_bytes);
  if (!choice.packed) choice.packed_at = c.scratch(packed_bytes);
  if (!c.ranked(in.x) || !c.output(0).type.ranked) return choice;
  const std::span<const Dim> x = c.dims(in.x), y = c.output(0).type.dims;
  if (!a.window.channels_last) {
    choice.x_at = c.scratch(pixels_and_channels(x));
    choice.y_at = c.scratch(pixels_and_channels(y) * Dim(element_bits(c.output(0).type.type) / 8));
  }
  if (!is_scalar(c, in.w_zero)) choice.w_zeros_at = c.scratch((*w)[0] * 4);
  choice.working_at =
      c.scratch(choice.depthwise ? kernels::int_depthwise_scratch_bytes(choice.plane, c.threads)
                                 : kernels::int_gemm_scratch_bytes(k, c.threads));
  if (!c.is_concrete()) return choice;
  const Window window = make_window(a.window, *constant_dims(c.input(in.x)), *constant_dims(c.output(0)),
                                    std::span<const int64_t>(*w).subspan(2));
  choice.window = c.make<Window>(window);
  choice.in_pixels = volume(window.rank, window.in), choice.out_pixels = volume(window.rank, window.out);
  if (choice.depthwise) set_sizes(window, choice.plane);
  return choice;
}

void pack_integer_conv(const PackContext& c, const IntegerConv& choice) {
  pack_weights(choice, c.raw.data, c.raw.type == ElementType::kInt8, c.destination);
}

Cost cost_integer_conv(const NodeContext& c, const IntegerConvInputs& in) {
  const auto w = constant_dims(c.input(in.w));
  const auto y = constant_dims(c.output(0));
  if (!w || !y) return {};
  int64_t operations = 2;
  for (int64_t d : *y) operations = checked_mul(operations, d);
  for (size_t i = 1; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  return {operations, tensor_bytes(c)};
}

const std::byte* packed_conv_weights(const RunContext& c, const IntegerConvInputs& in,
                                     const IntegerConv& choice) {
  const TensorView& w = c.inputs[in.w];
  if (choice.packed) return w.data;
  pack_weights(choice, w.data, w.type == ElementType::kInt8, c.scratch + choice.packed_at);
  return c.scratch + choice.packed_at;
}

}  // namespace plimsoll
