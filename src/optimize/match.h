// Small questions that rewrites ask about nodes and edges.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

bool is_op(const Node* node, std::string_view op_type, std::string_view domain = "");
// The node that makes the edge, if it is this operator of ai.onnx; else null.
Node* maker(const Edge* edge, std::string_view op_type);

bool is_constant(const Edge* edge);
bool is_real(const Edge* edge);  // a tensor of any float type
// Its number of dimensions, -1 if unknown.
int64_t rank_of(const Edge* edge);
// Both shapes are known and equal for all values of the symbols.
bool same_shape(const Edge* a, const Edge* b);
// The elements of a constant tensor of at most `limit` floats of 16 or 32 bits; float cannot hold doubles.
std::optional<std::vector<float>> floats(const Edge* edge, int64_t limit = 1 << 20);
// What an element of a constant may be off from the number that was meant, relative: 0 for 32 bits.
float rounding_of(const Edge* edge);
// The elements of an integer tensor, by data or by shape arithmetic.
std::optional<std::vector<int64_t>> integers(const Edge* edge);
// The element of a constant that can meet `other` without changing its shape: one float of 16 or 32 bits,
// rank no higher.
std::optional<float> scalar_for(const Edge* edge, const Edge* other);
bool is_scalar(const Edge* edge, const Edge* other, float value);

// The two inputs of a commutative node told apart: `constant` by the test, `value` the other one.
struct Operands {
  Edge* value = nullptr;
  Edge* constant = nullptr;
  explicit operator bool() const { return value != nullptr; }
};
Operands split_constant(const Node& node);
// The other input of a binary node.
Edge* other_input(const Node& node, const Edge* one);

int64_t attribute_or(const Node& node, std::string_view name, int64_t fallback);
float attribute_or(const Node& node, std::string_view name, float fallback);
std::span<const int64_t> integers_attribute(const Node& node, std::string_view name);  // empty if absent

// A constant that means one number per channel of `x`, shaped as broadcasting to [N, C, spatial...]
// asks ([C, 1, 1], [1, C, 1, 1], one element): its C values (or 1). Nullopt if it is anything else.
std::optional<std::vector<float>> per_channel(const Edge* constant, int64_t x_rank, int64_t channels);

// Of a Transpose; the default is the reverse order.
std::vector<int64_t> permutation_of(const Node& transpose);
bool is_identity_permutation(std::span<const int64_t> perm);
std::vector<int64_t> inverse_permutation(std::span<const int64_t> perm);
// The permutation of Transpose(second)(Transpose(first)(x)).
std::vector<int64_t> compose_permutations(std::span<const int64_t> first, std::span<const int64_t> second);

}  // namespace plimsoll
