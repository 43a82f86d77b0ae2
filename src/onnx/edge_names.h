// Names under which values are written: a rewritten Graph may hold values of one name, or of none.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace plimsoll::onnx {

// Every value keeps its name if no other of its graph has it, nor a value that a body uses from around
// it; the model's inputs and outputs come first. `root` must outlive this.
class EdgeNames {
 public:
  explicit EdgeNames(const Graph& root);
  std::string_view operator[](const Edge* edge) const { return names_[edge->id]; }
  // A new name for a value of `graph`, made from `base`.
  std::string_view fresh(std::string_view base);

 private:
  using Taken = std::unordered_set<std::string_view>;
  void name_graph(const Graph& graph);
  void collect_captured(const Graph& graph, Taken& taken) const;
  void name(const Edge* edge, Taken& taken);

  std::vector<std::string_view> names_;  // by id
  std::unordered_set<std::string_view> all_;
  std::deque<std::string> made_;
};

}  // namespace plimsoll::onnx
