// What com.microsoft's operators that others stand for share.
#pragma once

#include "graph/decompose.h"
#include "kernels/activation.h"
#include "ops/elementwise.h"

namespace plimsoll {

// The last input, where it is present, is a vector with an element per element of the last dimension of
// input 0.
void expect_last_dimension(const InferContext& c, size_t i);
// Output 0 is like input 0, and the inputs named have its type.
void infer_like_first(InferContext& c, TypeSet types, std::initializer_list<size_t> others);
// As if the node were `op` in that domain and version, with these inputs and attributes.
void infer_as(InferContext& c, const OpDef& op, std::string_view domain, int version,
              std::span<const Facts> inputs, std::span<const Attribute> attributes);
// Output `output`, where it is wanted: how many elements of an int32 mask of [batch, length] are 1, by batch;
// 0 without a mask.
void write_mask_counts(DecomposeContext& c, size_t output, Edge* ids, Edge* mask);
// The facts of all inputs.
std::vector<Facts> facts_of_inputs(const NodeContext& c);
// The node's attributes, to be changed.
AttributeList attributes_of(const Node& node, BumpArena& arena);

}  // namespace plimsoll
