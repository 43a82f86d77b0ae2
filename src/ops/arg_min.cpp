#include "graph/gradient.h"
#include "ops/arg_extreme.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  return arg_extreme_attrs(c, false);
}

}  // namespace

extern const OpDef op_arg_min = {
    .name = "ArgMin",
    .attrs = attrs,
    .infer = infer_arg_extreme,
    .run = run_arg_extreme,
    .gradient = no_gradient,
};

}  // namespace plimsoll
