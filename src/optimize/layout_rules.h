// What each operator can do with channels-last tensors: (N, spatial..., C) where ONNX says (N, C,
// spatial...).
#pragma once

#include <vector>

#include "graph/graph.h"
#include "optimize/editor.h"

namespace plimsoll {

enum class LayoutChoice : uint8_t {
  kPlain,   // as ONNX says only
  kEither,  // all its ports channels-last, or none
  kLast,    // channels-last: its kernels want it, or it is a Transpose that makes or unmakes it
};

// Ports are the inputs and outputs that are channels-last together; the others never are.
struct LayoutPorts {
  LayoutChoice choice = LayoutChoice::kPlain;
  std::vector<bool> inputs, outputs;
};
LayoutPorts layout_ports(const Node& node, const Editor& editor);

// What has to change in a node whose ports become channels-last: attributes, and inputs that are no
// ports. `inputs` are the node's; ports are left alone. Shape gets its output permuted.
void adapt_to_channels_last(Node& node, Editor& editor, std::vector<Edge*>& inputs,
                            AttributeList& attributes);

// A Transpose from ONNX's order to channels-last, or back.
bool is_to_last(const Node& node);
bool is_to_first(const Node& node);
std::vector<int64_t> to_last_permutation(int64_t rank);
std::vector<int64_t> to_first_permutation(int64_t rank);
// Where dimension `axis` (not negative) of a tensor is when it is channels-last.
int64_t axis_in_last(int64_t axis, int64_t rank);

}  // namespace plimsoll
