// Axes, shapes, scales and constants of operators that turn channels-last; part of the layout rules.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "optimize/editor.h"

namespace plimsoll {

// Every dimension is known to be 1, or there is none.
bool is_single_element(const Edge* edge);

// The attribute or constant input `axes`, not negative; nullopt if unknown or absent.
std::optional<std::vector<int64_t>> axes_of(const Node& node, int64_t rank);
// Those of a Reduce; absent ones are all.
std::optional<std::vector<int64_t>> reduce_axes(const Node& node);
// Writes the axes back, as attribute or input, whichever the node has.
void permute_axes(const std::vector<int64_t>& axes, int64_t rank, Editor& editor, std::vector<Edge*>& inputs,
                  AttributeList& attributes);

// Slice, Pad, Resize and Upsample.
bool can_permute_operands(const Node& node);
void permute_operands(Node& node, Editor& editor, std::vector<Edge*>& inputs, AttributeList& attributes);

// A Reshape that leaves (N, C) alone and regroups what follows.
bool can_permute_reshape(const Node& node);
void permute_reshape(Node& node, Editor& editor, std::vector<Edge*>& inputs);

// Constants of lower rank that broadcast.
void permute_small_operands(Node& node, Editor& editor, std::vector<Edge*>& inputs);

// A constant of full rank in channels-last order: the same bytes where that will do, else a Transpose.
Edge* channels_last_constant(Node& place, Edge& constant, Editor& editor);

// Makes a Shape of a channels-last tensor tell ONNX's order.
void permute_shape_output(Node& node, Editor& editor, AttributeList& attributes);

}  // namespace plimsoll
