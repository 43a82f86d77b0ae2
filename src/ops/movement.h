// What the operators that move data and do shape arithmetic share.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/op_def.h"
#include "kernels/copy.h"

namespace plimsoll {

// What operators that never touch single elements can carry.
inline constexpr TypeSet kPackedTypes =
    types(ElementType::kUint4, ElementType::kInt4, ElementType::kFloat4E2M1, ElementType::kUint2,
          ElementType::kInt2);
inline constexpr TypeSet kViewTypes = kAllTypes | kPackedTypes;

// Bytes of one element of a type in kAllTypes.
inline size_t width_of(ElementType type) {
  return static_cast<size_t>(element_bits(type)) / 8;
}
inline Dim width_dim(ElementType type) {
  return Dim(static_cast<int64_t>(width_of(type)));
}

// Elements between neighbours along `axis` of a row-major tensor.
int64_t stride_of(std::span<const int64_t> dims, size_t axis);
int64_t count_of(std::span<const int64_t> dims);

// The elements of an integer tensor as far as facts tell (alias has no InferContext).
std::optional<std::vector<Dim>> known_values(const Facts& facts);
// The elements of an integer tensor at hand, of type int32 or int64.
int64_t index_at(const TensorView& view, int64_t i);
// The number of elements of a one-dimensional input, where it is a constant.
std::optional<size_t> known_length(const InferContext& c, size_t input);

std::vector<Dim> unknown_dims(InferContext& c, size_t rank);
// Output 0 from a shape tensor whose elements are not known: as many unknown dimensions as it has
// elements, or no rank.
void set_output_shaped_by(InferContext& c, ElementType type, size_t shape_input);
// axes, each in -rank..rank-1 and no two the same, as 0..rank-1; throws otherwise.
std::vector<int64_t> resolve_axes(const InferContext& c, std::span<const int64_t> axes, size_t rank);
// The list that newer opsets take as an input and older ones as an attribute; nullopt if unknown.
std::optional<std::vector<int64_t>> attribute_or_input(InferContext& c, std::span<const int64_t> attribute,
                                                       size_t input);
// The dimension that a and b both are; prefers the one that says more, throws if they cannot agree.
Dim unify(const NodeContext& c, Dim a, Dim b);
// Throws if input i, where it is there, is no tensor of this shape. What is not known passes.
void expect_dims(const InferContext& c, size_t i, const std::vector<Dim>& expected);
// Likewise of input j, whose shape is to be that of input i.
void expect_same_dims(const InferContext& c, size_t i, size_t j);

// alias and run of operators whose output is their first input under another shape.
void alias_whole(AliasContext& c);
void run_whole(const RunContext& c);
// Their gradient: that of the output under the input's shape.
void gradient_whole(GradientContext& c);

}  // namespace plimsoll
