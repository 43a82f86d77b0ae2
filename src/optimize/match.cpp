#include "optimize/match.h"

#include <cstring>

namespace plimsoll {

bool is_op(const Node* node, std::string_view op_type, std::string_view domain) {
  return node != nullptr && node->op_type == op_type && node->domain == domain;
}

Node* maker(const Edge* edge, std::string_view op_type) {
  return edge != nullptr && is_op(edge->producer, op_type) ? edge->producer : nullptr;
}

bool is_constant(const Edge* edge) {
  return edge != nullptr && edge->constant != nullptr;
}

bool is_real(const Edge* edge) {
  return edge != nullptr && edge->facts.type.kind == ValueKind::kTensor && is_float(edge->facts.type.type);
}

int64_t rank_of(const Edge* edge) {
  return edge != nullptr && edge->facts.type.ranked ? static_cast<int64_t>(edge->facts.type.rank()) : -1;
}

bool same_shape(const Edge* a, const Edge* b) {
  if (rank_of(a) < 0 || rank_of(a) != rank_of(b)) return false;
  for (size_t i = 0; i < a->facts.type.rank(); ++i) {
    if (!(a->facts.type.dims[i] == b->facts.type.dims[i])) return false;
  }
  return true;
}

std::optional<std::vector<float>> floats(const Edge* edge, int64_t limit) {
  if (!is_constant(edge) || !is_float(edge->constant->type)) return std::nullopt;
  if (edge->constant->type == ElementType::kDouble) return std::nullopt;
  const int64_t count = edge->constant->elements();
  if (count > limit) return std::nullopt;
  std::vector<float> values(static_cast<size_t>(count));
  visit_float(edge->constant->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {  // at any address
      T value;
      std::memcpy(&value, edge->constant->data + i * sizeof(T), sizeof(T));
      values[i] = static_cast<float>(value);
    }
  });
  return values;
}

float rounding_of(const Edge* edge) {
  if (edge->facts.type.type == ElementType::kFloat16) return 0x1p-10f;
  return edge->facts.type.type == ElementType::kBFloat16 ? 0x1p-7f : 0;
}

namespace {

std::optional<std::vector<int64_t>> integers_of_view(const TensorView& view) {
  if (!is_integer(view.type) || view.elements() > 4096) return std::nullopt;
  std::vector<int64_t> values(static_cast<size_t>(view.elements()));
  visit_integer(view.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, view.data + i * sizeof(T), sizeof(T));
      values[i] = static_cast<int64_t>(value);
    }
  });
  return values;
}

}  // namespace

std::optional<std::vector<int64_t>> integers(const Edge* edge) {
  if (edge == nullptr) return std::nullopt;
  if (edge->constant != nullptr) return integers_of_view(*edge->constant);
  if (edge->facts.constant != nullptr) return integers_of_view(*edge->facts.constant);
  if (!edge->facts.values || !is_integer(edge->facts.type.type)) return std::nullopt;
  std::vector<int64_t> values;
  for (Dim d : *edge->facts.values) {
    if (!d.is_constant()) return std::nullopt;
    values.push_back(d.value());
  }
  return values;
}

std::optional<float> scalar_for(const Edge* edge, const Edge* other) {
  if (!is_constant(edge) || edge->constant->elements() != 1) return std::nullopt;
  if (rank_of(other) < 0 || rank_of(edge) > rank_of(other)) return std::nullopt;
  const auto values = floats(edge);
  return values ? std::optional((*values)[0]) : std::nullopt;
}

bool is_scalar(const Edge* edge, const Edge* other, float value) {
  const auto found = scalar_for(edge, other);
  return found && *found == value;
}

Operands split_constant(const Node& node) {
  if (node.inputs.size() != 2) return {};
  Edge* a = node.inputs[0];
  Edge* b = node.inputs[1];
  if (is_constant(b) && !is_constant(a)) return {a, b};
  if (is_constant(a) && !is_constant(b)) return {b, a};
  return {};
}

Edge* other_input(const Node& node, const Edge* one) {
  return node.inputs[0] == one ? node.inputs[1] : node.inputs[0];
}

int64_t attribute_or(const Node& node, std::string_view name, int64_t fallback) {
  const Attribute* a = node.attribute(name);
  return a != nullptr && a->type == AttributeType::kInt ? a->i : fallback;
}

float attribute_or(const Node& node, std::string_view name, float fallback) {
  const Attribute* a = node.attribute(name);
  return a != nullptr && a->type == AttributeType::kFloat ? a->f : fallback;
}

std::span<const int64_t> integers_attribute(const Node& node, std::string_view name) {
  const Attribute* a = node.attribute(name);
  return a != nullptr && a->type == AttributeType::kInts ? a->ints : std::span<const int64_t>();
}

std::optional<std::vector<float>> per_channel(const Edge* constant, int64_t x_rank, int64_t channels) {
  if (!is_constant(constant) || x_rank < 2) return std::nullopt;
  const std::span<const int64_t> dims = constant->constant->dims;
  if (static_cast<int64_t>(dims.size()) > x_rank) return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_channel = static_cast<int64_t>(dims.size() - i) == x_rank - 1;
    if (dims[i] != 1 && !(is_channel && dims[i] == channels)) return std::nullopt;
  }
  return floats(constant);
}

std::vector<int64_t> permutation_of(const Node& transpose) {
  const std::span<const int64_t> perm = integers_attribute(transpose, "perm");
  if (!perm.empty()) return {perm.begin(), perm.end()};
  std::vector<int64_t> reversed;
  for (int64_t i = rank_of(transpose.input(0)) - 1; i >= 0; --i) reversed.push_back(i);
  return reversed;
}

bool is_identity_permutation(std::span<const int64_t> perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

std::vector<int64_t> inverse_permutation(std::span<const int64_t> perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

std::vector<int64_t> compose_permutations(std::span<const int64_t> first, std::span<const int64_t> second) {
  std::vector<int64_t> result;
  for (int64_t axis : second) result.push_back(first[static_cast<size_t>(axis)]);
  return result;
}

}  // namespace plimsoll
