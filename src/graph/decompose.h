// Decomposition: an operator that is others put together. Its `decompose` writes their nodes in its place
// when a model is loaded, after inference; so it has `infer`, and no `run`.
#pragma once

#include <initializer_list>

#include "graph/builder.h"
#include "graph/op_def.h"

namespace plimsoll {

// The version in which nodes of ai.onnx are written.
inline constexpr int kDecomposeOpset = 23;

class DecomposeContext : public NodeContext {
 public:
  DecomposeContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                   GraphBuilder& graph_builder)
      : NodeContext(node, inputs, outputs), build(graph_builder) {}

  // Null where it is absent.
  Edge* in(size_t i) const { return node_.input(i); }
  Edge* out(size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : nullptr; }

  AttributeList attributes() const { return build.attributes(); }
  // A node of ai.onnx with one new output, which is returned.
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs) const {
    return build.op(op_type, inputs);
  }
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs,
           const AttributeList& attributes) const {
    return build.op(op_type, inputs, attributes);
  }
  // The same, whose output is the node's output i, or a new one where that is absent.
  Edge* op_into(size_t i, std::string_view op_type, std::initializer_list<Edge*> inputs) const {
    return op_into(i, op_type, inputs, attributes());
  }
  Edge* op_into(size_t i, std::string_view op_type, std::initializer_list<Edge*> inputs,
                const AttributeList& attributes) const {
    if (out(i) == nullptr) return op(op_type, inputs, attributes);
    Edge* const outputs[] = {out(i)};
    build.emit_into(outputs, "", op_type, std::span<Edge* const>(inputs.begin(), inputs.size()),
                    attributes.list());
    return out(i);
  }
  // A number of any float type, without dimensions.
  Edge* scalar(ElementType type, float value) const {
    Edge* number = build.scalar(value);
    if (type == ElementType::kFloat || type == ElementType::kUndefined) return number;
    return op("Cast", {number}, attributes().set("to", static_cast<int64_t>(type)));
  }

  GraphBuilder& build;
};

}  // namespace plimsoll
