#include "graph/gradient.h"
#include "ops/arg_extreme.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return arg_extreme_attrs(c, true);
}

}  // namespace

extern const OpDef op_arg_max = {
    .name = "ArgMax",
    .attrs = attrs,
    .infer = infer_arg_extreme,
    .run = run_arg_extreme,
    .gradient = no_gradient,
};

}  // namespace plimsoll
