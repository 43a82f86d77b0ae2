// FusedQLinearConv: QLinearConv with bounds, a residual, or floats as output; see qlinear_conv.h.
#include "ops/layout.h"
#include "ops/qlinear_conv.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  infer_qlinear_conv(c);
  const auto& a = c.attrs<QLinearConvAttrs>();
  if (c.has_input(kQConvZ) && (a.groups != 1 || !a.window.channels_last))
    c.reject("input {}: expected one group, and channels last", kQConvZ);
}

void alias(AliasContext& c) {
  if (c.has_input(kQConvZ)) c.overwrite(kQConvZ);
}

void layout(LayoutContext& c) {
  layout_fused(c, LayoutChoice::kMoved, kQConvZ);
}

}  // namespace

extern const OpDef op_fused_qlinear_conv = {
    .domain = kPlimsollDomain,
    .name = "FusedQLinearConv",
    .inputs = {6, 14},
    .attrs = read_qlinear_conv,
    .infer = infer,
    .alias = alias,
    .select = select_qlinear_conv,
    .pack = pack_qlinear_conv,
    .run = run_qlinear_conv,
    .cost = cost_qlinear_conv,
    .layout = layout,
    .optional_inputs = (1u << kQConv.x_zero) | (1u << kQConv.w_zero),
};

}  // namespace plimsoll
