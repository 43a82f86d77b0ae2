#include "optimize/quantized.h"

#include "tensor/small_types.h"

namespace plimsoll {
namespace {

bool is_linear(const Node* node, std::string_view op_type) {
  return (is_op(node, op_type) || is_op(node, op_type, kMicrosoftDomain)) &&
         attribute_or(*node, "block_size", int64_t{0}) == 0;
}

bool is_constant_f32(const Edge* edge) {
  return is_constant(edge) && edge->constant->type == ElementType::kFloat && edge->constant->elements() > 0;
}

// Scale and zero point of a node on `q`, if they are constants that fit each other.
QuantizedValue parameters_of(const Node& node, Edge* q) {
  Edge *scale = node.input(1), *zero = node.input(2);
  if (q == nullptr || q->facts.type.kind != ValueKind::kTensor || !is_constant_f32(scale)) return {};
  if (zero != nullptr && (!is_constant(zero) || zero->constant->elements() != scale->constant->elements() ||
                          zero->facts.type.type != q->facts.type.type))
    return {};
  int64_t axis = attribute_or(node, "axis", int64_t{1});
  if (axis < 0) axis += std::max<int64_t>(rank_of(q), 0);
  return {q, scale, zero, axis};
}

}  // namespace

bool is_byte(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kUint8;
}

bool QuantizedValue::is_whole() const {
  return scale->constant->elements() == 1;
}

QuantizedValue dequantized(const Edge* edge) {
  const Node* node = edge != nullptr ? edge->producer : nullptr;
  if (node == nullptr || !is_linear(node, "DequantizeLinear") || edge->facts.type.type != ElementType::kFloat)
    return {};
  return parameters_of(*node, node->input(0));
}

QuantizedValue whole_dequantized(const Edge* edge) {
  const QuantizedValue value = dequantized(edge);
  return value && value.is_whole() && is_byte(value.type()) ? value : QuantizedValue{};
}

QuantizedValue quantized(const Node* node) {
  if (node == nullptr || !is_linear(node, "QuantizeLinear")) return {};
  const Edge* x = node->input(0);
  if (x == nullptr || x->facts.type.type != ElementType::kFloat) return {};
  const QuantizedValue value = parameters_of(*node, node->outputs[0]);
  return value && value.is_whole() && is_byte(value.type()) ? value : QuantizedValue{};
}

Node* only_quantizer(const Edge& edge, const Editor& editor) {
  Node* user = editor.only_user(edge);
  return quantized(user) && user->input(0) == &edge ? user : nullptr;
}

float scale_of(const QuantizedValue& value) {
  return (*floats(value.scale))[0];
}

int32_t zero_of(const QuantizedValue& value) {
  return value.zero == nullptr ? 0 : integer_at(value.type(), value.zero->constant->data, 0);
}

bool same_quantization(const QuantizedValue& a, const QuantizedValue& b) {
  return a && b && a.type() == b.type() && a.is_whole() && b.is_whole() && scale_of(a) == scale_of(b) &&
         zero_of(a) == zero_of(b);
}

Edge* zero_edge(const QuantizedValue& value, Editor& editor) {
  if (value.zero != nullptr) return value.zero;
  const std::vector<std::byte> zeros(static_cast<size_t>(value.scale->constant->elements()));
  return editor.constant("zero_point", value.type(), value.scale->constant->dims,
                         std::span<const std::byte>(zeros));
}

}  // namespace plimsoll
