// Heads that only a run can count.
#pragma once

#include "graph/decompose.h"

namespace plimsoll {

// The inputs of RotaryEmbedding behind the first; positions are null where the tables have a row for each
// step.
struct RotaryTables {
  Edge *cosine, *sine, *positions;
};

// Writes output 0: RotaryEmbedding of input 0, [batch, steps, width], whose heads have `size` elements, a
// vector of one number.
void write_rotary_of_heads(DecomposeContext& c, Edge* size, const RotaryTables& tables,
                           const AttributeList& attributes);

}  // namespace plimsoll
