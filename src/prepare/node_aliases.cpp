#include "prepare/node_aliases.h"

#include <algorithm>

#include "prepare/value_facts.h"

namespace plimsoll {

NodeAliases::NodeAliases(const Graph& root, FactsTable& facts, TransientMemory& memory)
    : facts_(facts), arena_(memory.arena()), entries_(arena_.array<Entry>(root.node_count())) {}

std::vector<Facts> NodeAliases::gather(std::span<Edge* const> edges) const {
  std::vector<Facts> result(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] != nullptr) result[i] = facts_[edges[i]];
  }
  return result;
}

NodeAliases::Entry& NodeAliases::entry(const Node& node) {
  Entry& entry = entries_[node.id];
  if (entry.looked) return entry;
  entry.looked = true;
  const auto moves = [&](const Edge* edge) { return edge != nullptr && !is_static(facts_[edge]); };
  entry.dynamic = std::any_of(node.inputs.begin(), node.inputs.end(), moves) ||
                  std::any_of(node.outputs.begin(), node.outputs.end(), moves);
  entry.constant = !node.op->control_flow &&
                   std::all_of(node.outputs.begin(), node.outputs.end(),
                               [&](const Edge* edge) { return edge == nullptr || is_known(facts_[edge]); });
  return entry;
}

std::span<const Alias> NodeAliases::of(const Node& node) {
  Entry& entry = this->entry(node);
  if (entry.asked) return entry.aliases;
  entry.asked = true;
  if (node.op->alias != nullptr && !entry.dynamic) {
    const std::vector<Facts> inputs = gather(node.inputs);
    std::vector<Facts> outputs = gather(node.outputs);
    AliasContext context(node, inputs, outputs);
    node.op->alias(context);
    entry.aliases = arena_.copy(context.aliases);
  }
  return entry.aliases;
}

bool NodeAliases::is_view(const Node& node) {
  Entry& entry = this->entry(node);
  if (entry.view != View::kUnasked) return entry.view == View::kYes;
  size_t views = 0, outputs = 0;
  if (!node.op->control_flow && !entry.constant && !entry.dynamic) {
    for (const Edge* edge : node.outputs) outputs += edge != nullptr;
    for (const Alias& alias : of(node))
      views += alias.kind == AliasKind::kView && node.outputs[alias.output] != nullptr;
  }
  entry.view = outputs > 0 && views == outputs ? View::kYes : View::kNo;
  return entry.view == View::kYes;
}

}  // namespace plimsoll
