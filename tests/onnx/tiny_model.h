// Protobuf by hand: small models, right and wrong, written as data.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "graph/graph.h"
#include "onnx/fields.h"
#include "plimsoll/value.h"

namespace plimsoll::tiny {

// Proto().text(2, "name").number(1, 7).message(3, Proto()...)
struct Proto {
  std::string bytes;
  Proto() = default;

  Proto& number(uint32_t field, int64_t value) {
    protozero::pbf_writer(bytes).add_int64(field, value);
    return *this;
  }
  Proto& real(uint32_t field, float value) {
    protozero::pbf_writer(bytes).add_float(field, value);
    return *this;
  }
  Proto& text(uint32_t field, const std::string& value) {
    protozero::pbf_writer(bytes).add_bytes(field, value);
    return *this;
  }
  Proto& message(uint32_t field, const Proto& inner) { return text(field, inner.bytes); }
  Proto& messages(uint32_t field, const std::vector<Proto>& inner) {
    for (const Proto& m : inner) message(field, m);
    return *this;
  }
  Proto& numbers(uint32_t field, const std::vector<int64_t>& values) {
    for (int64_t v : values) number(field, v);
    return *this;
  }
  Proto& packed(uint32_t field, const std::vector<int64_t>& values) {
    protozero::pbf_writer(bytes).add_packed_int64(field, values.begin(), values.end());
    return *this;
  }
  Proto& raw(const std::string& any) {
    bytes += any;
    return *this;
  }
};

using namespace plimsoll::onnx;

inline Proto tensor_header(const std::string& name, ElementType type, const std::vector<int64_t>& dims) {
  return Proto()
      .numbers(tensor_field::kDims, dims)
      .number(tensor_field::kDataType, static_cast<int>(type))
      .text(tensor_field::kName, name);
}
template <typename T>
Proto raw_tensor(const std::string& name, ElementType type, const std::vector<int64_t>& dims,
                 const std::vector<T>& values) {
  return tensor_header(name, type, dims)
      .text(tensor_field::kRawData,
            std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}
inline Proto floats(const std::string& name, const std::vector<float>& values) {
  return raw_tensor(name, ElementType::kFloat, {static_cast<int64_t>(values.size())}, values);
}

// A dimension is a size or a name.
struct DimSpec {
  int64_t size = -1;
  const char* name = nullptr;
  DimSpec(int64_t value) : size(value) {}      // NOLINT
  DimSpec(int value) : size(value) {}          // NOLINT
  DimSpec(const char* value) : name(value) {}  // NOLINT
};
inline Proto tensor_type(const std::vector<DimSpec>& dims, ElementType type = ElementType::kFloat) {
  Proto shape;
  for (const DimSpec& d : dims) {
    shape.message(shape_field::kDim, d.name != nullptr ? Proto().text(dim_field::kParam, d.name)
                                                       : Proto().number(dim_field::kValue, d.size));
  }
  return Proto().message(type_field::kTensor, Proto()
                                                  .number(tensor_type_field::kElement, static_cast<int>(type))
                                                  .message(tensor_type_field::kShape, shape));
}
inline Proto value(const std::string& name, const Proto& type) {
  return Proto().text(value_field::kName, name).message(value_field::kType, type);
}
inline Proto value(const std::string& name, const std::vector<DimSpec>& dims = {2}) {
  return value(name, tensor_type(dims));
}

inline Proto node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const std::vector<Proto>& attributes = {},
                  const std::string& domain = "") {
  Proto p;
  for (const std::string& name : inputs) p.text(node_field::kInput, name);
  for (const std::string& name : outputs) p.text(node_field::kOutput, name);
  p.text(node_field::kOpType, op).messages(node_field::kAttribute, attributes);
  return domain.empty() ? p : p.text(node_field::kDomain, domain);
}
inline Proto attribute(const std::string& name, AttributeType type) {
  return Proto().text(attribute_field::kName, name).number(attribute_field::kType, static_cast<int>(type));
}
inline Proto body(const std::string& name, const Proto& graph) {
  return attribute(name, AttributeType::kGraph).message(attribute_field::kGraph, graph);
}

inline Proto graph(const std::vector<Proto>& nodes, const std::vector<Proto>& inputs,
                   const std::vector<Proto>& outputs, const std::vector<Proto>& initializers = {}) {
  return Proto()
      .text(graph_field::kName, "g")
      .messages(graph_field::kNode, nodes)
      .messages(graph_field::kInput, inputs)
      .messages(graph_field::kOutput, outputs)
      .messages(graph_field::kInitializer, initializers);
}
inline Proto opset(const std::string& domain, int64_t version) {
  return Proto().text(opset_field::kDomain, domain).number(opset_field::kVersion, version);
}
inline Proto model(const Proto& graph_proto, int64_t version = 17) {
  return Proto()
      .number(model_field::kIrVersion, 8)
      .message(model_field::kOpsetImport, opset("", version))
      .message(model_field::kGraph, graph_proto);
}

// Something of everything: a body that captures, typed and raw data, strings, a local function, names.
inline Proto rich_model() {
  const Proto then_body = graph({node("Add", {"x", "w"}, {"sum"})}, {}, {value("sum")});
  const Proto else_body =
      graph({node("Mul", {"late", "c"}, {"product"})}, {}, {value("product")}, {floats("c", {3, 4})});
  const Proto words = tensor_header("words", ElementType::kString, {2})
                          .text(tensor_field::kStringData, "one")
                          .text(tensor_field::kStringData, "two");
  const Proto ints =
      tensor_header("ints", ElementType::kInt8, {3}).packed(tensor_field::kInt32Data, {-1, 0, 127});
  const Proto constant =
      attribute("value", AttributeType::kTensor).message(attribute_field::kTensor, floats("", {5}));
  const Proto function =
      Proto()
          .text(function_field::kName, "twice")
          .text(function_field::kDomain, "local")
          .text(function_field::kInput, "a")
          .text(function_field::kOutput, "b")
          .text(function_field::kAttribute, "alpha")
          .message(function_field::kNode,
                   node("LeakyRelu", {"a"}, {"b"},
                        {Proto().text(1, "alpha").text(attribute_field::kReference, "alpha").number(20, 1)}))
          .message(function_field::kOpsetImport, opset("", 16));
  const std::vector<Proto> nodes = {
      node("If", {"flag"}, {"y"}, {body("then_branch", then_body), body("else_branch", else_body)}),
      node("Relu", {"x"}, {"late"}),
      node("Constant", {}, {"k"}, {constant}),
      node("twice", {"y"}, {"z"}, {attribute("alpha", AttributeType::kFloat).real(2, 0.5f)}, "local"),
      node("Clip", {"z", "", "k"}, {"out"}),
  };
  return model(graph(nodes,
                     {value("x", {"n"}), value("flag", tensor_type({}, ElementType::kBool)), value("w", {2})},
                     {value("out", {"n"})}, {floats("w", {1, 2}), words, ints}))
      .message(model_field::kOpsetImport, opset("local", 1))
      .message(model_field::kFunctions, function)
      .message(model_field::kMetadata, Proto().text(1, "key").text(2, "value"));
}

}  // namespace plimsoll::tiny
