#include "graph/node_changes.h"

namespace plimsoll {

void NodeChanges::set(std::string_view attribute, int64_t value) {
  attributes.push_back({AttributeChange::Kind::kInteger, attribute, {value}});
}

void NodeChanges::set(std::string_view attribute, const std::vector<int64_t>& values) {
  attributes.push_back({AttributeChange::Kind::kIntegers, attribute, values});
}

void NodeChanges::remove(std::string_view attribute) {
  attributes.push_back({AttributeChange::Kind::kAbsent, attribute, {}});
}

void NodeChanges::set_entries(size_t input, const std::vector<int64_t>& entries) {
  inputs.push_back({InputChange::Kind::kEntries, input, entries});
}

void NodeChanges::set_integers(size_t input, const std::vector<int64_t>& values) {
  inputs.push_back({InputChange::Kind::kIntegers, input, values});
}

void NodeChanges::leave_out(size_t input) {
  inputs.push_back({InputChange::Kind::kAbsent, input, {}});
}

void NodeChanges::broadcast(size_t input) {
  inputs.push_back({InputChange::Kind::kBroadcast, input, {}});
}

AttributeList NodeChanges::changed_attributes(BumpArena& arena, const Node& node) const {
  AttributeList list(arena, node);
  for (const AttributeChange& change : attributes) {
    switch (change.kind) {
      case AttributeChange::Kind::kInteger:
        list.set(change.name, change.values[0]);
        break;
      case AttributeChange::Kind::kIntegers:
        list.set(change.name, std::span<const int64_t>(change.values));
        break;
      case AttributeChange::Kind::kAbsent:
        list.erase(change.name);
        break;
    }
  }
  return list;
}

}  // namespace plimsoll
