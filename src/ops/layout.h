// What operators of one family say about layouts; see graph/layout.h.
#pragma once

#include "graph/layout.h"

namespace plimsoll {

// Element by element: inputs besides 0 are no tensors of its shape.
void layout_unary(LayoutContext& c);
// Inputs of the output's rank move with it; constants of lower rank are given it first.
void layout_broadcasting(LayoutContext& c);
// Likewise for these inputs; the others are no tensors of its shape.
void layout_broadcasting(LayoutContext& c, std::span<const size_t> inputs);
// Float kernels that know channels-last by the attribute of that name. Windowed ones want it, global
// ones take either.
void layout_windowed(LayoutContext& c);
void layout_global_pool(LayoutContext& c);
// Inputs 0 and `addend` move, and the attribute channels_last says so.
void layout_fused(LayoutContext& c, LayoutChoice choice, size_t addend);
// Input 0 and output 0 move, and with them the axis that the attribute `axis` names.
void layout_axis_attribute(LayoutContext& c, int64_t axis);
// Dimensions of input 0 go (Reduce, Squeeze) or become 1 (keepdims). `axes` are not negative; they are
// written to input 1, or to the attribute where there is none.
void layout_removed_axes(LayoutContext& c, const std::vector<int64_t>& axes, bool keeps_dims);

// Writes axes of a tensor of this rank to input 1, if the node has it, else to the attribute.
void set_moved_axes(LayoutContext& c, const std::vector<int64_t>& axes, size_t rank);
// Axes, which may be negative, as 0..rank-1; nullopt if they are not known or not there.
std::optional<std::vector<int64_t>> resolved_axes(const std::optional<std::vector<int64_t>>& axes,
                                                  size_t rank);
// A list attribute of older opsets, an input of newer ones.
std::optional<std::vector<int64_t>> attribute_or_known(const NodeContext& c,
                                                       std::span<const int64_t> attribute, size_t input);

}  // namespace plimsoll
