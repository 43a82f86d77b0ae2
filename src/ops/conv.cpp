#include "ops/conv_common.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  return a;
}

}  // namespace

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
};

}  // namespace plimsoll
