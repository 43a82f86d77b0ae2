// What each node's outputs may share with its inputs, asked once per node.
#pragma once

#include "graph/infer.h"
#include "memory/transient_memory.h"

namespace plimsoll {

class NodeAliases {
 public:
  NodeAliases(const Graph& root, FactsTable& facts, TransientMemory& memory);

  std::span<const Alias> of(const Node& node);
  bool is_dynamic(const Node& node) { return entry(node).dynamic; }    // its shapes depend on data
  bool is_constant(const Node& node) { return entry(node).constant; }  // its results are known before the run
  bool is_view(const Node& node);                                      // its results look at its inputs
  std::vector<Facts> gather(std::span<Edge* const> edges) const;

 private:
  enum class View : uint8_t { kUnasked, kNo, kYes };
  struct Entry {
    bool looked = false, dynamic = false, constant = false, asked = false;
    View view = View::kUnasked;
    std::span<const Alias> aliases;
  };
  Entry& entry(const Node& node);

  FactsTable& facts_;
  BumpArena& arena_;
  std::span<Entry> entries_;  // by node id
};

}  // namespace plimsoll
