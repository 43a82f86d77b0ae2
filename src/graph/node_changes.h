// What changes in a node that a rewrite adapts: attributes, and inputs that are lists or small constants.
// Plain data, so that an operator can say what would change without changing anything.
#pragma once

#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace plimsoll {

struct NodeChanges {
  struct AttributeChange {
    enum class Kind : uint8_t { kInteger, kIntegers, kAbsent } kind;
    std::string_view name;  // a literal
    std::vector<int64_t> values;
  };
  struct InputChange {
    enum class Kind : uint8_t {
      kEntries,    // a list whose entry i is entry values[i] of what it was
      kIntegers,   // a constant list
      kAbsent,     // left out
      kBroadcast,  // a constant of lower rank than output 0: of its rank, and moved (graph/layout.h)
    } kind;
    size_t input;
    std::vector<int64_t> values;
  };

  void set(std::string_view attribute, int64_t value);
  void set(std::string_view attribute, const std::vector<int64_t>& values);
  void remove(std::string_view attribute);
  void set_entries(size_t input, const std::vector<int64_t>& entries);
  void set_integers(size_t input, const std::vector<int64_t>& values);
  void leave_out(size_t input);
  void broadcast(size_t input);

  // The node's attributes after the changes.
  AttributeList changed_attributes(BumpArena& arena, const Node& node) const;

  std::vector<AttributeChange> attributes;
  std::vector<InputChange> inputs;
};

}  // namespace plimsoll
