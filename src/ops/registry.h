// The table of operators, and turning a node's names into an OpDef.
#pragma once

#include <span>
#include <string_view>

#include "graph/op_def.h"

namespace plimsoll {

std::span<const OpDef* const> all_ops();
// Null if it is not implemented.
const OpDef* find_op(std::string_view domain, std::string_view name);
// Sets op and attrs of a node and checks its arity; one that has another name gets that operator and its
// version. Throws kNotImplemented naming the operator.
void resolve(Node& node, BumpArena& arena);
// Resolves every node of the graph and its bodies.
void resolve(Graph& graph);

}  // namespace plimsoll
