#include "quantize/quantize_model.h"

namespace plimsoll {
namespace {

class GemmRewriter : public Rewriter {
 public:
  GemmRewriter(QuantizeContext& context, NodeFilter& filter, bool only_of_weights)
      : Rewriter(context), filter_(filter), only_of_weights_(only_of_weights) {}

  void rewrite() {
    each_node([&](Node& node) {
      if (node.op_type == "Gemm" && node.domain.empty() && wanted(node) && is_plain(node) &&
          (!only_of_weights_ || is_weight(node.inputs[1]))) {
        split(node);
      } else {
        keep(node);
      }
    });
  }

 private:
  static int64_t integer(const Node& node, std::string_view name) {
    const Attribute* found = node.attribute(name);
    return found == nullptr ? 0 : found->i;
  }
  static bool is_plain(const Node& node) {
    const auto is_one = [&](std::string_view name) {
      const Attribute* found = node.attribute(name);
      return found == nullptr || found->f == 1.0f;
    };
    return is_one("alpha") && is_one("beta") && integer(node, "transA") == 0;
  }

  bool wanted(const Node& node) const {
    Node as_product = node;
    as_product.op_type = "MatMul";
    return filter_.wants(node) || filter_.wants(as_product);
  }

  void split(Node& node) {
    const std::string name(node.name), y(node.outputs[0]->name);
    Edge* b = node.inputs[1];
    if (integer(node, "transB") != 0) b = transposed(*b, name);
    Edge* bias = node.input(2);
    Edge* product = bias == nullptr ? node.outputs[0] : edge(y + "_MatMul", node.outputs[0]->facts.type.type);
    if (bias != nullptr) product->facts = node.outputs[0]->facts;
    emit("MatMul", name + "_MatMul", {node.inputs[0], b}, {product});
    if (!filter_.only_nodes.empty()) filter_.only_nodes.insert(name + "_MatMul");
    if (!filter_.op_types.empty()) filter_.op_types.insert("MatMul");
    if (bias != nullptr) emit("Add", name + "_Add", {product, bias}, {node.outputs[0]});
  }

  Edge* transposed(Edge& b, const std::string& name) {
    if (!is_weight(&b) || b.data->dims.size() != 2) {
      Edge* turned = edge(std::string(b.name) + "_Transposed", b.facts.type.type);
      emit("Transpose", name + "_Transpose", {&b}, {turned});
      return turned;
    }
    Edge*& known = transposed_[&b];
    if (known != nullptr) return known;
    const int64_t rows = b.data->dims[0], columns = b.data->dims[1];
    const int64_t dims[] = {columns, rows};
    const Room place = room(std::string(b.name), b.data->type, dims);
    const auto size = static_cast<size_t>(element_bits(b.data->type) / 8);
    const std::byte* from = b.data->bytes.data();
    for (int64_t i = 0; i < (context_.reader.plans() ? 0 : rows); ++i) {
      for (int64_t j = 0; j < columns; ++j)
        std::memcpy(place.bytes.data() + static_cast<size_t>(j * rows + i) * size,
                    from + static_cast<size_t>(i * columns + j) * size, size);
    }
    context_.reader.drop(*b.data, 0, rows * columns);
    settle(place);
    return known = place.edge;
  }

  NodeFilter& filter_;
  const bool only_of_weights_;
  std::unordered_map<const Edge*, Edge*> transposed_;
};

}  // namespace

void gemm_to_matmul(QuantizeContext& context, NodeFilter& filter, bool only_of_weights) {
  GemmRewriter(context, filter, only_of_weights).rewrite();
}

}  // namespace plimsoll
