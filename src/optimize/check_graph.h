// Proves a model anew after a pass, for tests: whatever a pass built must stand without it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

// Throws kInvalidModel unless nodes, edges and bodies know each other consistently: every value is made
// once, by its producer, before it is used and where it can be seen.
void check_links(Graph& root);

// Remembers what is known of the model's outputs.
class PassChecker {
 public:
  explicit PassChecker(Graph& root);
  // Throws kInvalidModel naming the pass unless the links are right, every node is one that a file could
  // hold, inference over the whole model agrees with what the pass left on the edges, and the outputs have
  // the names, types and shapes of before. `pass` is part of the message. Needs memory of the model's arena.
  void check(const std::string& pass);

 private:
  void check_nodes();
  void check_facts();
  void check_outputs();

  Graph& root_;
  std::vector<std::string> names_;
  std::vector<TypeInfo> types_;
  size_t warnings_;
};

}  // namespace plimsoll
