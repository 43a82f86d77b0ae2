#include "onnx/proto_writer.h"

#include <algorithm>
#include <map>

#include "onnx/fields.h"
#include "onnx/message.h"

namespace plimsoll::onnx {
namespace {

constexpr size_t kExternalFrom = 1024;  // smaller tensors stay in the model
constexpr int kOwnOpset = 13;           // of nodes of ours in a model that imports no ai.onnx

protozero::data_view view(std::string_view text) {
  return {text.data(), text.size()};
}

void add_text(Rope& out, uint32_t field, std::string_view text) {
  if (!text.empty()) out.fields().add_bytes(field, view(text));
}

void add_integer(Rope& out, uint32_t field, int64_t value) {
  out.fields().add_int64(field, value);
}

void add_header(Rope& out, const TensorData& tensor, std::string_view name) {
  for (int64_t dim : tensor.dims) add_integer(out, tensor_field::kDims, dim);
  add_integer(out, tensor_field::kDataType, static_cast<int>(tensor.type));
  add_text(out, tensor_field::kName, name);
}

Rope write_entry(std::string_view key, std::string_view value) {
  Rope out;
  out.fields().add_bytes(entry_field::kKey, view(key));
  out.fields().add_bytes(entry_field::kValue, view(value));
  return out;
}

Rope write_sparse(const SparseData& sparse) {
  Rope out;
  out.message(sparse_field::kValues, write_tensor(sparse.values, {}));
  out.message(sparse_field::kIndices, write_tensor(sparse.indices, {}));
  for (int64_t dim : sparse.dims) add_integer(out, sparse_field::kDims, dim);
  return out;
}

Rope write_shape(std::span<const Dim> dims) {
  Rope out;
  for (Dim dim : dims) {
    Rope inner;
    if (dim.is_constant()) {
      add_integer(inner, dim_field::kValue, dim.value());
    } else {
      add_text(inner, dim_field::kParam, dim.to_string());
    }
    out.message(shape_field::kDim, inner);
  }
  return out;
}

bool is_known(const TypeInfo& type) {
  return type.kind != ValueKind::kTensor || type.type != ElementType::kUndefined;
}

}  // namespace

Rope write_tensor(const TensorData& tensor, std::string_view name) {
  Rope out;
  add_header(out, tensor, name);
  if (tensor.type != ElementType::kString) {
    out.bytes(tensor_field::kRawData, tensor.bytes);
    return out;
  }
  for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(StringRef)) {
    StringRef text;
    std::memcpy(&text, tensor.bytes.data() + at, sizeof text);
    out.bytes(tensor_field::kStringData, as_bytes(text.view()));
  }
  return out;
}

Rope write_type(const TypeInfo& type) {
  Rope inner, out;
  uint32_t field = type_field::kTensor;
  switch (type.kind) {
    case ValueKind::kSparseTensor:
      field = type_field::kSparseTensor;
      [[fallthrough]];
    case ValueKind::kTensor:
      add_integer(inner, tensor_type_field::kElement, static_cast<int>(type.type));
      if (type.ranked) inner.message(tensor_type_field::kShape, write_shape(type.dims));
      break;
    case ValueKind::kMap:
      field = type_field::kMap;
      add_integer(inner, map_type_field::kKey, static_cast<int>(type.key));
      if (type.element != nullptr) inner.message(map_type_field::kValue, write_type(*type.element));
      break;
    case ValueKind::kSequence:
    case ValueKind::kOptional:
      field = type.kind == ValueKind::kSequence ? type_field::kSequence : type_field::kOptional;
      if (type.element != nullptr) inner.message(sequence_type_field::kElement, write_type(*type.element));
      break;
  }
  out.message(field, inner);
  return out;
}

Rope ProtoWriter::write_model() {
  Rope out;
  add_integer(out, model_field::kIrVersion, ir_version());
  add_text(out, model_field::kProducerName, root_.producer_name);
  add_text(out, model_field::kProducerVersion, root_.producer_version);
  add_text(out, model_field::kDomain, root_.domain);
  if (root_.model_version != 0) add_integer(out, model_field::kModelVersion, root_.model_version);
  add_text(out, model_field::kDocString, root_.doc_string);
  for (const NameValue& entry : root_.metadata)
    out.message(model_field::kMetadata, write_entry(entry.name, entry.value));
  for (const Function& function : root_.functions)
    out.message(model_field::kFunctions, write_function(function));
  out.message(model_field::kGraph, write_graph(root_));
  write_opsets(root_.opsets, root_, model_field::kOpsetImport, out);
  return out;
}

// Initializers that are no inputs exist since version 4, local functions since 8.
int64_t ProtoWriter::ir_version() const {
  int64_t version = root_.ir_version == 0 ? 8 : root_.ir_version;
  const auto is_input = [&](const Edge* edge) {
    return std::find(root_.inputs.begin(), root_.inputs.end(), edge) != root_.inputs.end();
  };
  if (version < 4 && !std::all_of(root_.initializers.begin(), root_.initializers.end(), is_input))
    version = 4;
  return root_.functions.empty() ? version : std::max<int64_t>(version, 8);
}

namespace {

void collect_domains(const Graph& graph, std::map<std::string_view, int>& out) {
  for (const Node* node : graph.nodes) {
    out.try_emplace(node->domain, node->opset);
    for (const Attribute& attribute : node->attributes) {
      if (attribute.graph != nullptr) collect_domains(*attribute.graph, out);
      for (const Graph* body : attribute.graphs) collect_domains(*body, out);
    }
  }
}

}  // namespace

void ProtoWriter::write_opsets(std::span<const OpsetImport> imports, const Graph& graph, uint32_t field,
                               Rope& out) {
  std::map<std::string_view, int> missing;
  collect_domains(graph, missing);
  if (has_identity_) missing.try_emplace("", kOwnOpset);
  has_identity_ = false;
  const auto write = [&](std::string_view domain, int64_t version) {
    Rope opset;
    add_text(opset, opset_field::kDomain, domain);
    add_integer(opset, opset_field::kVersion, version);
    out.message(field, opset);
  };
  for (const OpsetImport& import : imports) {
    write(import.domain, import.version);
    missing.erase(import.domain);
  }
  for (const auto& [domain, version] : missing)
    write(domain, version > 0 ? version : domain.empty() ? kOwnOpset : 1);
}

Rope ProtoWriter::write_graph(const Graph& graph) {
  Rope nodes, out;
  for (const Node* node : graph.nodes) nodes.message(graph_field::kNode, write_node(*node));
  add_text(out, graph_field::kName, graph.name.empty() ? "graph" : graph.name);
  for (const Edge* edge : graph.inputs) out.message(graph_field::kInput, write_value(edge, names_[edge]));
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    out.message(graph_field::kOutput, write_value(graph.outputs[i], output_name(graph, i, nodes)));
  out.append(nodes);
  for (const Edge* edge : graph.initializers)
    out.message(graph_field::kInitializer, write_initializer(*edge, names_[edge]));
  return out;
}

std::string_view ProtoWriter::output_name(const Graph& graph, size_t index, Rope& nodes) {
  const Edge* edge = graph.outputs[index];
  const bool is_repeated =
      std::find(graph.outputs.begin(), graph.outputs.begin() + index, edge) != graph.outputs.begin() + index;
  if (!is_repeated && edge->graph == &graph) return names_[edge];
  const std::string_view name = names_.fresh(names_[edge]);
  Rope node;
  node.fields().add_bytes(node_field::kInput, view(names_[edge]));
  node.fields().add_bytes(node_field::kOutput, view(name));
  add_text(node, node_field::kOpType, "Identity");
  has_identity_ = true;
  nodes.message(graph_field::kNode, node);
  return name;
}

Rope ProtoWriter::write_value(const Edge* edge, std::string_view name) {
  Rope out;
  out.fields().add_bytes(value_field::kName, view(name));
  if (is_known(edge->facts.type)) out.message(value_field::kType, write_type(edge->facts.type));
  return out;
}

bool ProtoWriter::is_external(const Edge& edge) const {
  const TensorData& tensor = *edge.data;
  if (external_ == nullptr || tensor.bytes.size() < kExternalFrom || tensor.type == ElementType::kString)
    return false;
  return !external_->only_root || (edge.graph == &root_ && tensor.type != ElementType::kBool);
}

Rope ProtoWriter::write_initializer(const Edge& edge, std::string_view name) {
  const TensorData& tensor = *edge.data;
  if (!is_external(edge)) return write_tensor(tensor, name);
  const bool absent = external_->is_absent && external_->is_absent(edge);
  Rope& file = external_->bytes;
  if (!absent) file.zeros((external_->alignment - file.size() % external_->alignment) % external_->alignment);
  if (external_->written) external_->written(name, edge, file.size(), absent);
  Rope out;
  add_header(out, tensor, name);
  const std::string& location = absent ? external_->absent_location : external_->location;
  out.message(tensor_field::kExternalData, write_entry("location", location));
  out.message(tensor_field::kExternalData, write_entry("offset", std::to_string(absent ? 0 : file.size())));
  out.message(tensor_field::kExternalData, write_entry("length", std::to_string(tensor.bytes.size())));
  add_integer(out, tensor_field::kDataLocation, 1);
  if (!absent) file.append(tensor.bytes);
  return out;
}

Rope ProtoWriter::write_node(const Node& node) {
  Rope out;
  const auto name = [&](const Edge* edge) { return edge == nullptr ? std::string_view() : names_[edge]; };
  for (const Edge* edge : node.inputs) out.fields().add_bytes(node_field::kInput, view(name(edge)));
  for (const Edge* edge : node.outputs) out.fields().add_bytes(node_field::kOutput, view(name(edge)));
  add_text(out, node_field::kName, node.name);
  add_text(out, node_field::kOpType, node.op_type);
  add_text(out, node_field::kDomain, node.domain);
  add_text(out, node_field::kOverload, node.overload);
  for (const Attribute& attribute : node.attributes)
    out.message(node_field::kAttribute, write_attribute(attribute));
  return out;
}

Rope ProtoWriter::write_attribute(const Attribute& a) {
  Rope out;
  add_text(out, attribute_field::kName, a.name);
  add_text(out, attribute_field::kReference, a.reference);
  add_integer(out, attribute_field::kType, static_cast<int>(a.type));
  if (!a.reference.empty()) return out;
  switch (a.type) {
    case AttributeType::kFloat:
      out.fields().add_float(attribute_field::kFloat, a.f);
      break;
    case AttributeType::kInt:
      add_integer(out, attribute_field::kInt, a.i);
      break;
    case AttributeType::kString:
      out.fields().add_bytes(attribute_field::kString, view(a.s));
      break;
    case AttributeType::kTensor:
      out.message(attribute_field::kTensor, write_tensor(*a.tensor, {}));
      break;
    case AttributeType::kGraph:
      out.message(attribute_field::kGraph, write_graph(*a.graph));
      break;
    case AttributeType::kSparseTensor:
      out.message(attribute_field::kSparse, write_sparse(*a.sparse));
      break;
    case AttributeType::kTypeProto:
      out.message(attribute_field::kTypeProto, write_type(*a.type_info));
      break;
    case AttributeType::kFloats:
      for (float value : a.floats) out.fields().add_float(attribute_field::kFloats, value);
      break;
    case AttributeType::kInts:
      for (int64_t value : a.ints) add_integer(out, attribute_field::kInts, value);
      break;
    case AttributeType::kStrings:
      for (std::string_view text : a.strings) out.fields().add_bytes(attribute_field::kStrings, view(text));
      break;
    case AttributeType::kTensors:
      for (const TensorData& t : a.tensors) out.message(attribute_field::kTensors, write_tensor(t, {}));
      break;
    case AttributeType::kGraphs:
      for (const Graph* body : a.graphs) out.message(attribute_field::kGraphs, write_graph(*body));
      break;
    case AttributeType::kSparseTensors:
      for (const SparseData& t : a.sparses) out.message(attribute_field::kSparses, write_sparse(t));
      break;
    case AttributeType::kTypeProtos:
      for (const TypeInfo& t : a.type_infos) out.message(attribute_field::kTypeProtos, write_type(t));
      break;
    case AttributeType::kUndefined:
      break;
  }
  return out;
}

Rope ProtoWriter::write_function(const Function& function) {
  Rope out;
  add_text(out, function_field::kName, function.name);
  add_text(out, function_field::kDomain, function.domain);
  add_text(out, function_field::kOverload, function.overload);
  for (std::string_view name : function.attributes)
    out.fields().add_bytes(function_field::kAttribute, view(name));
  for (const Attribute& a : function.attribute_defaults)
    out.message(function_field::kAttributeDefault, write_attribute(a));
  for (const Edge* edge : function.body->inputs)
    out.fields().add_bytes(function_field::kInput, view(names_[edge]));
  for (const Edge* edge : function.body->outputs)
    out.fields().add_bytes(function_field::kOutput, view(names_[edge]));
  for (const Node* node : function.body->nodes) out.message(function_field::kNode, write_node(*node));
  write_opsets(function.opsets, *function.body, function_field::kOpsetImport, out);
  return out;
}

}  // namespace plimsoll::onnx
