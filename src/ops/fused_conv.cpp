// FusedConv(X, W, B, Z, S) = activation(conv(X, W * S) + B + Z). X, Z and the output are channels-last where
// `channels_last` says so; W is as in ONNX; S has one factor per output channel.
#include "ops/activation_attr.h"
#include "ops/conv_common.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  a->activation = read_activation(c);
  return a;
}

void layout(LayoutContext& c) {
  layout_fused(c, LayoutChoice::kMoved, kConvAddend);
}

}  // namespace

extern const OpDef op_fused_conv = {
    .domain = kPlimsollDomain,
    .name = "FusedConv",
    .inputs = {2, 5},
    .attrs = attrs,
    .infer = infer_conv,
    .alias = alias_conv,
    .select = select_conv,
    .pack = pack_conv,
    .run = run_conv,
    .cost = cost_conv,
    .layout = layout,
    .region = region_conv,
};

}  // namespace plimsoll
