// Scatter is ScatterElements under its name of opsets 9 and 10.
#include "ops/scatter_elements.h"

namespace plimsoll {

extern const OpDef op_scatter = {
    .name = "Scatter",
    .inputs = {3, 3},
    .attrs = scatter_elements_attrs,
    .infer = infer_scatter_elements,
    .alias = alias_scatter_elements,
    .run = run_scatter_elements,
    .gradient = gradient_scatter_elements,
};

}  // namespace plimsoll
