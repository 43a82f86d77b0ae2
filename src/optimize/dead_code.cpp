#include <algorithm>
#include <memory_resource>
#include <optional>
#include <unordered_set>
#include <vector>

#include "memory/transient_memory.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Marks every edge that an output of the model needs, bodies of needed nodes included.
class Liveness {
 public:
  Liveness(Graph& root, std::pmr::memory_resource* memory)
      : edges_(root.edge_count(), false, memory), work_(memory) {
    enter(root);
  }
  bool edge(const Edge* e) const { return e != nullptr && edges_[e->id]; }
  bool node(const Node* n) const {
    return std::any_of(n->outputs.begin(), n->outputs.end(), [&](const Edge* e) { return edge(e); });
  }

 private:
  void enter(Graph& graph) {
    for (Edge* output : graph.outputs) mark(output);
    while (!work_.empty()) {
      const Node* node = work_.back();
      work_.pop_back();
      for (Edge* input : node->inputs) mark(input);
      for (const Attribute& a : node->attributes) {
        if (a.graph != nullptr) mark_outputs(*a.graph);
        for (Graph* body : a.graphs) mark_outputs(*body);
      }
    }
  }
  void mark_outputs(Graph& body) {
    for (Edge* output : body.outputs) mark(output);
  }
  void mark(Edge* edge) {
    if (edge == nullptr || edges_[edge->id]) return;
    const bool known = edge->producer != nullptr && node(edge->producer);
    edges_[edge->id] = true;
    if (edge->producer != nullptr && !known) work_.push_back(edge->producer);
  }

  std::pmr::vector<bool> edges_;
  std::pmr::vector<const Node*> work_;
};

template <typename T, typename Keep>
bool retain(ArenaVector<T*>& list, Keep&& keep) {
  T** end = std::remove_if(list.begin(), list.end(), [&](T* item) { return !keep(item); });
  const auto kept = static_cast<size_t>(end - list.begin());
  if (kept == list.size()) return false;
  list.resize_down(kept);
  return true;
}

}  // namespace

bool remove_dead_code(Graph& root, const OptimizeOptions& options) {
  std::optional<TransientMemory> own;
  std::pmr::memory_resource* memory =
      options.tables != nullptr ? options.tables : own.emplace(root.arena().budget()).resource();
  const Liveness live(root, memory);
  const std::pmr::unordered_set<const Edge*> inputs(root.inputs.begin(), root.inputs.end(), 0, {}, {},
                                                    memory);
  bool changed = false;
  root.for_each_graph([&](Graph& graph) {
    changed |= retain(graph.nodes, [&](Node* node) { return live.node(node); });
    changed |=
        retain(graph.initializers, [&](Edge* edge) { return live.edge(edge) || inputs.count(edge) > 0; });
  });
  return changed;
}

}  // namespace plimsoll
