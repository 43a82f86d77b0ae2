#include "graph/op_def.h"

namespace plimsoll {

extern const OpDef op_grid_sample;
extern const OpDef op_microsoft_grid_sample = {
    .domain = kMicrosoftDomain, .name = "GridSample", .same_as = &op_grid_sample, .same_version = 16};

}  // namespace plimsoll
