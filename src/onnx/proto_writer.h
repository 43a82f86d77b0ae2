// Tensors, types, attributes, nodes, graphs -> protobuf.
#pragma once

#include <functional>

#include "onnx/edge_names.h"
#include "onnx/rope.h"

namespace plimsoll::onnx {

Rope write_tensor(const TensorData& tensor, std::string_view name);
Rope write_type(const TypeInfo& type);

// Where initializers go that are not in the model itself.
struct ExternalTensors {
  std::string location;
  Rope bytes;
  uint64_t alignment = 4096;
  // Of the root only, and no bools, whose bytes are looked at while they are read.
  bool only_root = false;
  // Those of which only type and shape are written, with this location, and none of the bytes.
  std::function<bool(const Edge&)> is_absent;
  std::string absent_location;
  std::function<void(std::string_view name, const Edge&, uint64_t offset, bool is_absent)>
      written;  // told of each
};

class ProtoWriter {
 public:
  // `external` is null if everything goes into the model itself.
  ProtoWriter(const Graph& root, ExternalTensors* external)
      : root_(root), names_(root), external_(external) {}
  Rope write_model();

 private:
  Rope write_graph(const Graph& graph);
  Rope write_initializer(const Edge& edge, std::string_view name);
  bool is_external(const Edge& edge) const;
  Rope write_node(const Node& node);
  Rope write_attribute(const Attribute& attribute);
  Rope write_function(const Function& function);
  Rope write_value(const Edge* edge, std::string_view name);
  // The name of an output; one that ONNX does not allow as it is gets an Identity node.
  std::string_view output_name(const Graph& graph, size_t index, Rope& nodes);
  // Imports, with those of the nodes that were written since the last call.
  void write_opsets(std::span<const OpsetImport> imports, const Graph& graph, uint32_t field, Rope& out);
  int64_t ir_version() const;

  const Graph& root_;
  EdgeNames names_;
  ExternalTensors* external_;
  bool has_identity_ = false;  // an Identity was added and needs its domain
};

}  // namespace plimsoll::onnx
