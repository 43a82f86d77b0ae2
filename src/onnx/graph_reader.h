// ModelProto, GraphProto, NodeProto -> Graph.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "memory/transient_memory.h"
#include "onnx/message.h"
#include "onnx/tensor_reader.h"
#include "onnx/type_reader.h"

namespace plimsoll::onnx {

// The values that nodes of a graph can name: its own, then those of the graphs around it.
struct Scope {
  Scope(const Scope* around, TransientMemory& memory) : outer(around), names(memory.resource()) {}
  const Scope* outer;
  std::pmr::unordered_map<std::string_view, Edge*> names;
  Edge* find(std::string_view name) const;
};

// Opset versions by domain: the model's, or inside a local function the function's own.
using Opsets = std::unordered_map<std::string_view, int64_t>;

class GraphReader {
 public:
  GraphReader(Graph& root, ModelSource* source, const LoadOptions& options)
      : memory_(root.arena().budget()),
        arena_(root.arena()),
        root_(root),
        options_(options),
        tensors_(root.arena(), source, options, &root),
        types_(root.arena(), root.dims(), options) {
    root.strict = options.strict;
  }

  void read_model(Message model);

 private:
  struct Where {  // what the nodes being read belong to
    Graph& graph;
    Scope& scope;
    const Opsets& opsets;
    bool in_function;
    int depth;
  };
  struct NodeParts;
  class RepeatedConstants;

  // model_reader.cpp
  OpsetImport read_opset(Message opset);
  std::span<const OpsetImport> read_opsets(const std::vector<Message>& messages, Opsets& table);
  void add_assumed_imports();
  NameValue read_entry(Message entry);
  void read_functions(const std::vector<Message>& messages);
  Function read_function(Message function);
  void check_recursion() const;

  // graph_reader.cpp
  void read_graph(Message graph, const Where& where);
  void read_description(std::string_view text, const Where& where);
  Edge* define(const Where& where, std::string_view name, const char* role);
  void read_input(Message value, const Where& where);
  void read_initializer(std::string_view name, const TensorData& data, const Where& where);
  void read_output(Message value, const Where& where);
  void replace_initializer(Edge& edge, const TensorData& data, const Where& where);
  void define_outputs(const Message& node, RepeatedConstants& repeated, const Where& where);
  void read_nodes(std::span<const Message> nodes, const Where& where);
  void read_node(Message node, const Where& where);
  int node_opset(const NodeParts& parts, std::string_view label, const Where& where);
  int64_t assumed_version(std::string_view domain, std::string_view label);

  // attribute_reader.cpp
  std::span<const Attribute> read_attributes(const std::vector<Message>& messages, std::string_view owner,
                                             const Where& where);
  Attribute read_attribute(Message attribute, std::string_view owner, const Where& where);
  Graph* read_body(Message graph, const Where& where);
  TensorData* read_tensor(Message tensor);

  TransientMemory memory_;  // for tables as long as the model has nodes
  BumpArena& arena_;
  Graph& root_;
  const LoadOptions& options_;
  TensorReader tensors_;
  TypeReader types_;
  std::unordered_set<std::string_view> function_domains_;
  std::vector<OpsetImport> assumed_;  // that the file should have had
};

// "ai.onnx" is the empty domain.
inline std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

}  // namespace plimsoll::onnx
