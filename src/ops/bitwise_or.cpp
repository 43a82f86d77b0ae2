#include "ops/bitwise.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_bitwise(c, [](auto a, auto b) { return a | b; });
}

}  // namespace

extern const OpDef op_bitwise_or = bitwise_op("BitwiseOr", run);

}  // namespace plimsoll
