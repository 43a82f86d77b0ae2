// ConvDataGradient(dY, W, shape): the gradient of Conv's input, whose shape (N, C, spatial...) is given. It
// is a transposed convolution with the same weights; attributes are those of the Conv.
#include "ops/conv_common.h"
#include "ops/conv_transpose.h"
#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<TransposeAttrs>();
  read_window(c, a->window);
  a->groups = c.integer("group", 1);
  if (a->groups < 1 || a->groups > INT32_MAX) c.reject("attribute 'group': found {}", a->groups);
  a->is_gradient = true;
  a->winograd = read_winograd(c);
  return a;
}

void check_taps(const InferContext& c, const WindowAttrs& window, std::span<const Dim> w) {
  for (size_t i = 2; i < w.size(); ++i) {
    if (!w[i].is_constant()) continue;
    const int64_t taps = w[i].value();
    if (taps < 1 || taps > INT32_MAX)
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
    if (!window.kernel.empty() && taps != window.kernel[i - 2])
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               window.kernel[i - 2], i - 2, to_string(w));
  }
}

void infer(InferContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  c.expect_type(2, types(ElementType::kInt64));
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  const size_t rank = c.rank(0);
  check_window(c, a.window, rank);
  c.expect_rank(1, rank, rank);
  const std::span<const Dim> dy = c.dims(0), w = c.dims(1);
  const size_t channel = channel_axis(a.window, rank);
  if (dy[channel].is_constant() && w[0].is_constant() && !(dy[channel] == w[0]))
    c.reject("expected {} channels of dY, found {}", w[0].value(), dy[channel].value());
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} channels do not divide into {} groups", w[0].value(), a.groups);
  check_taps(c, a.window, w);
  const auto shape = c.values(2);
  if (shape && shape->size() != rank) c.reject("shape: expected {} sizes, found {}", rank, shape->size());
  std::vector<Dim> x(rank);
  x[0] = shape ? unify(c, dy[0], (*shape)[0]) : dy[0];
  x[channel] = shape ? unify(c, w[1] * a.groups, (*shape)[1]) : w[1] * a.groups;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    x[axis] = shape ? (*shape)[2 + i] : c.unknown("");
    const Dim expected = window_output(a.window, i, x[axis], w[2 + i], false);
    if (expected.is_constant() && dy[axis].is_constant() && !(expected == dy[axis]))
      c.reject("dY has shape {}, which does not belong to an input of size {} along dimension {}",
               to_string(dy), x[axis].to_string(), 2 + i);
  }
  c.set_output(0, c.type(0), x);
}

}  // namespace

extern const OpDef op_conv_data_gradient = {
    .domain = kPlimsollDomain,
    .name = "ConvDataGradient",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select_conv_transpose,
    .pack = pack_conv_transpose,
    .run = run_conv_transpose,
    .cost = cost_conv_transpose,
    .layout = layout_windowed,
};

}  // namespace plimsoll
