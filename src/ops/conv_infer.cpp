#include <algorithm>

#include "ops/conv_common.h"

namespace plimsoll {
namespace {

void expect_channels(const InferContext& c, const char* what, Dim found, Dim expected) {
  if (found.is_constant() && expected.is_constant() && !(found == expected))
    c.reject("{}: expected {} channels, found {}", what, expected.value(), found.value());
}

// One value per output channel.
void check_vector(InferContext& c, size_t input, const char* what, Dim channels) {
  if (!c.has_input(input)) return;
  c.expect_same_type(kConvX, input);
  c.expect_rank(input, 1, 1);
  if (c.ranked(input)) expect_channels(c, what, c.dims(input)[0], channels);
}

void check_kernel(InferContext& c, const ConvAttrs& a) {
  const std::span<const Dim> w = c.dims(kConvW);
  for (size_t i = 0; i < a.window.kernel.size(); ++i) {
    const Dim taps = w[2 + i];
    if (taps.is_constant() && taps.value() != a.window.kernel[i])
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               a.window.kernel[i], i, to_string(w));
  }
  for (size_t i = 2; i < w.size(); ++i) {
    if (w[i].is_constant() && (w[i].value() < 1 || w[i].value() > INT32_MAX))
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
  }
  const bool is_cut = a.some_channels > 0;
  if (is_cut && (a.groups > 1 || w.size() > 5 || !w[1].is_constant() ||
                 a.first_channel + a.some_channels > w[1].value()))
    c.reject("attribute 'weight_channels': {} and {} of weights of shape {} in {} groups", a.first_channel,
             a.some_channels, to_string(w), a.groups);
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} output channels do not divide into {} groups", w[0].value(), a.groups);
}

// All that packing reads: it comes before anything is known of X.
void check_weights(InferContext& c, const ConvAttrs& a) {
  c.expect_rank(kConvW, 3, 2 + kMaxSpatial);
  check_window(c, a.window, c.rank(kConvW));
  check_kernel(c, a);
  const Dim channels = c.dims(kConvW)[0];
  check_vector(c, kConvBias, "bias", channels);
  check_vector(c, kConvScale, "scale", channels);
}

}  // namespace

kernels::WinogradForm read_winograd(AttrContext& c) {
  const int64_t form = c.integer("winograd", 0);
  if (form != 0 && form != 2 && form != 4)
    c.reject("attribute 'winograd': expected 0, 2 or 4, found {}", form);
  return static_cast<kernels::WinogradForm>(form);
}

void read_conv(AttrContext& c, ConvAttrs& attrs) {
  read_window(c, attrs.window);
  attrs.groups = c.integer("group", 1);
  if (attrs.groups < 1 || attrs.groups > INT32_MAX) c.reject("attribute 'group': found {}", attrs.groups);
  if (c.node().domain != kPlimsollDomain) return;
  attrs.winograd = read_winograd(c);
  attrs.strassen = c.integer("strassen", 0) != 0;
  attrs.rounded = c.integer("rounded", 0) != 0;
  const std::span<const int64_t> some = c.integers("weight_channels");
  if (some.empty()) return;
  if (some.size() != 2 || some[0] < 0 || some[1] < 1 || some[0] > INT32_MAX || some[1] > INT32_MAX)
    c.reject("attribute 'weight_channels': expected the first and the number of them, found {}",
             to_string(some));
  attrs.first_channel = some[0], attrs.some_channels = some[1];
}

void infer_conv(InferContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  c.expect_type(kConvX, kFloatTypes);
  c.expect_same_type(kConvX, kConvW);
  if (c.ranked(kConvX)) check_window(c, a.window, c.rank(kConvX));
  if (c.ranked(kConvW)) check_weights(c, a);
  if (!c.ranked(kConvX) || !c.ranked(kConvW)) return c.set_unranked_output(0, c.type(kConvX));
  const size_t rank = c.rank(kConvX);
  c.expect_rank(kConvW, rank, rank);
  const std::span<const Dim> x = c.dims(kConvX), w = c.dims(kConvW);
  expect_channels(c, "input 0", x[channel_axis(a.window, rank)],
                  a.some_channels > 0 ? Dim(a.some_channels) : w[1] * a.groups);
  std::vector<Dim> y(rank);
  y[0] = x[0];
  y[channel_axis(a.window, rank)] = w[0];
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    const Dim kernel = a.window.kernel.empty() ? w[2 + i] : Dim(a.window.kernel[i]);
    y[axis] = window_output(a.window, i, x[axis], kernel, false);
  }
  if (c.has_input(kConvAddend)) {
    c.expect_same_type(kConvX, kConvAddend);
    c.expect_rank(kConvAddend, rank, rank);
    for (size_t i = 0; c.ranked(kConvAddend) && i < rank; ++i) {
      const Dim z = c.dims(kConvAddend)[i];
      if (z.is_constant() && y[i].is_constant() && !(z == y[i]))
        c.reject("the addend has shape {}, the product {}", to_string(c.dims(kConvAddend)), to_string(y));
    }
  }
  c.set_output(0, c.type(kConvX), y);
}

void alias_conv(AliasContext& c) {
  if (!c.has_input(kConvAddend) || !c.ranked(kConvAddend) || !c.output(0).type.ranked) return;
  const std::span<const Dim> z = c.dims(kConvAddend), y = c.output(0).type.dims;
  if (std::equal(z.begin(), z.end(), y.begin(), y.end())) c.overwrite(kConvAddend);
}

void region_conv(RegionContext& c) {
  const ConvAttrs& a = c.attrs<ConvAttrs>();
  std::vector<int64_t> kernel;
  for (Dim d : c.dims(kConvW).subspan(2)) kernel.push_back(d.value());
  region_window(c, a.window, kernel, false);
  const size_t channel = channel_axis(a.window, c.rank(0));
  c.made[channel] = {0, c.output(0).type.dims[channel].value()};
  if (c.has_input(kConvAddend)) c.needs[kConvAddend] = c.made;
}

Cost cost_conv(const NodeContext& c) {
  const auto w = constant_dims(c.input(kConvW));
  const auto y = constant_dims(c.output(0));
  if (!w || !y) return {};
  int64_t operations = 2;
  for (int64_t d : *y) operations = checked_mul(operations, d);
  for (size_t i = 2; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  const auto& a = c.attrs<ConvAttrs>();
  operations = checked_mul(operations, a.channels_of((*w)[1]) / a.groups);
  return {operations, tensor_bytes(c)};
}

}  // namespace plimsoll
