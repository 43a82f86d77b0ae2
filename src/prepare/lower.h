// What every level of optimization needs done first.
#pragma once

#include <map>
#include <string_view>
#include <tuple>

#include "graph/graph.h"

namespace plimsoll {

// The local functions of a model by what a node calls them. The graph must outlive it.
class FunctionIndex {
 public:
  explicit FunctionIndex(const Graph& root);
  // Null if the node is an operator; of several functions of one name the last counts.
  const Function* find(const Node& node) const;

 private:
  using Name = std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload
  std::map<Name, const Function*> functions_;
};

// Replaces every node, in bodies too, that names a local function of the model by the function's body:
// its inputs and outputs take the place of the body's, references to attributes the caller's values or
// the defaults. Functions may call others; one that reaches itself is an Error (kInvalidModel). Names
// of new edges and nodes begin with the caller's name and stay unique. Nodes need not be resolved, and
// new ones are not; their version is the one that the function imports. Afterwards the model has no
// functions.
void inline_functions(Graph& root);

// Replaces every node, in bodies too, whose operator is others put together, or another one's second name
// (OpDef::decompose, OpDef::same_as). Nodes must be resolved and inferred; new ones are resolved. True if
// facts must be inferred again.
bool decompose_operators(Graph& root);

// Sequences and optionals whose elements are known as edges become those edges: what reads them reads
// tensors, and what makes them stays only where something still needs the list. Nodes are resolved and facts
// are on the edges; facts need to be inferred again afterwards. True if anything was changed.
bool lower_values(Graph& root);

}  // namespace plimsoll
