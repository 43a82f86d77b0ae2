#include "ops/conv_common.h"
#include "ops/conv_gradient.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  return a;
}

void gradient(GradientContext& c) {
  Edge *dy = c.gradient(), *x = c.in(kConvX), *w = c.in(kConvW);
  AttributeList attributes(c.build.graph().arena(), c.node());
  if (c.wants(kConvX)) c.set(kConvX, c.own_op("ConvDataGradient", {dy, w, c.shape_of(x)}, attributes));
  if (c.wants(kConvW)) {
    attributes.set("kernel_shape", std::span<const int64_t>(kernel_sizes(c)));
    c.set(kConvW, c.own_op("ConvWeightGradient", {x, dy}, attributes));
  }
  if (c.wants(kConvBias)) c.set(kConvBias, sum_of_channels(c, dy));
}

}  // namespace

Edge* sum_of_channels(const GradientContext& c, Edge* dy) {
  std::vector<int64_t> axes{0};
  for (size_t i = 2; i < c.rank(kConvX); ++i) axes.push_back(static_cast<int64_t>(i));
  return c.op("ReduceSum", {dy, c.build.integers(axes)}, c.attributes().set("keepdims", int64_t{0}));
}

std::vector<int64_t> kernel_sizes(const GradientContext& c) {
  std::vector<int64_t> sizes;
  for (Dim d : c.dims(kConvW).subspan(2)) {
    if (!d.is_constant()) c.reject("the gradient of its weights needs their sizes");
    sizes.push_back(d.value());
  }
  return sizes;
}

extern const OpDef op_conv = {
    .name = "Conv",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer_conv,
    .select = select_conv,
    .pack = pack_conv,
    .run = run_conv,
    .cost = cost_conv,
    .layout = layout_windowed,
    .region = region_conv,
    .channels_last = true,
    .gradient = gradient,
};

}  // namespace plimsoll
