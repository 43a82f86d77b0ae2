#include "ops/conv_common.h"

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
    .packs = packs_conv,
    .pack = pack_conv,
    .select = select_conv,
    .run = run_conv,
    .cost = cost_conv,
    .channels_last = true,
};

}  // namespace plimsoll
