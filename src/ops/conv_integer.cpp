#include "ops/integer_conv.h"

namespace plimsoll {
namespace {

constexpr IntegerConvInputs kInputs = {.x = 0, .w = 1, .x_zero = 2, .w_zero = 3};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConvAttrs>();
  read_conv(c, *a);
  return a;
}

void infer(InferContext& c) {
  infer_integer_conv(c, kInputs, ElementType::kInt32);
}

const void* select(SelectContext& c) {
  return c.make<IntegerConv>(select_integer_conv(c, kInputs));
}

void pack(const PackContext& c) {
  pack_integer_conv(c, c.choice<IntegerConv>());
}

void run(const RunContext& c) {
  run_integer_conv(c, kInputs, c.choice<IntegerConv>(), {});
}

Cost cost(const NodeContext& c) {
  return cost_integer_conv(c, kInputs);
}

}  // namespace

extern const OpDef op_conv_integer = {
    .name = "ConvInteger",
    .inputs = {2, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
