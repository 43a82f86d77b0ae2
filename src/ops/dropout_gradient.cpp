// The gradient of Dropout: Dropout of the gradient, with the numbers that the node `stream` drew in this run.
#include "ops/dropout.h"

namespace plimsoll {

extern const OpDef op_dropout_gradient = {
    .domain = kPlimsollDomain,
    .name = "DropoutGradient",
    .inputs = {1, 3},
    .deterministic = false,
    .attrs = dropout_attrs,
    .infer = infer_dropout,
    .alias = alias_dropout,
    .run = run_dropout,
};

}  // namespace plimsoll
