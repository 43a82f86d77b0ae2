// ByteTable(X, T) = T[X], where X is of 8 bits, taken as unsigned, and T has 256 bytes: what elementwise
// operators between DequantizeLinear and QuantizeLinear come to. The output is of T's type.
#include "kernels/byte_table.h"
#include "ops/elementwise.h"
#include "ops/integer_product.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kByteTypes);
  c.expect_type(1, kByteTypes);
  if (c.ranked(1)) {
    c.expect_rank(1, 1, 1);
    const Dim found = c.dims(1)[0];
    if (found.is_constant() && found.value() != 256)
      c.reject("input 1: expected 256 bytes, found {}", found.value());
  }
  set_output_like(c, 0, c.type(1), 0);
}

void run(const RunContext& c) {
  kernels::apply_byte_table(c.inputs[0].as<uint8_t>(), c.inputs[1].as<uint8_t>(), c.inputs[0].elements(),
                            c.outputs[0].as<uint8_t>(), c.threads);
}

}  // namespace

extern const OpDef op_byte_table = {
    .domain = kPlimsollDomain,
    .name = "ByteTable",
    .inputs = {2, 2},
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .layout = layout_unary,
    .unaligned_inputs = 1u << 1,
};

}  // namespace plimsoll
