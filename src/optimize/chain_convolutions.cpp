// Depthwise convolutions and the 1x1 convolutions around them as one node that computes them by bands of
// rows, where what is between them is too large to stay in the second-level cache from one to the other.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/conv_chain.h"
#include "ops/conv_common.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

constexpr int64_t kLeastBytes = 512 << 10;   // of what is between two of them
constexpr int64_t kMostWeights = 256 << 10;  // bytes of one: they pass by once for every band

const ConvAttrs& attrs_of(const Node& node) {
  return *static_cast<const ConvAttrs*>(node.attrs);
}

bool is_depthwise(const Node& node) {
  const std::span<const Dim> w = node.input(kConvW)->facts.type.dims;
  const int64_t groups = attrs_of(node).groups;
  return groups > 1 && w[0] == Dim(groups) && w[1] == Dim(1);
}

bool is_plain(const Node& node) {
  const WindowAttrs& window = attrs_of(node).window;
  const std::span<const Dim> w = node.input(kConvW)->facts.type.dims;
  bool plain = attrs_of(node).groups == 1;
  for (size_t i = 0; i < 2; ++i)
    plain &=
        w[2 + i] == Dim(1) && window.stride(i) == 1 && window.pad_begin(i) == 0 && window.pad_end(i) == 0;
  return plain;
}

// A convolution that can be part of a chain.
bool can_be_chained(const Node* node) {
  if (!is_op(node, "Conv", kPlimsollDomain) && !is_op(node, "FusedConv", kPlimsollDomain)) return false;
  if (attribute_or(*node, "channels_last", int64_t{0}) == 0) return false;
  const Edge *x = node->input(kConvX), *w = node->input(kConvW);
  if (w->data == nullptr || w->facts.type.type != ElementType::kFloat || rank_of(x) != 4 || rank_of(w) != 4)
    return false;
  const bool is_too_large = static_cast<int64_t>(w->data->bytes.size()) > kMostWeights;
  if (is_too_large || attrs_of(*node).some_channels > 0) return false;
  const WindowAttrs& window = attrs_of(*node).window;
  const std::span<const Dim> dims = x->facts.type.dims;
  for (size_t i = 0; i < 2; ++i) {
    const bool is_negative = window.pad_begin(i) < 0 || window.pad_end(i) < 0;
    if (window.dilation(i) != 1 || is_negative || !dims[1 + i].is_constant()) return false;
  }
  return !window.is_same() && dims[3].is_constant() && (is_depthwise(*node) || is_plain(*node));
}

// What is between them is large, and neither seen by others nor added to.
bool can_be_joined(const Node& first, const Node* second, const Edge& between) {
  if (!can_be_chained(second) || second->input(kConvX) != &between || first.input(kConvAddend) != nullptr)
    return false;
  if (is_depthwise(first) == is_depthwise(*second)) return false;
  int64_t bytes = sizeof(float);
  for (const Dim dim : between.facts.type.dims.subspan(1)) bytes = checked_mul(bytes, dim.value());
  return bytes >= kLeastBytes;
}

void copy_activation(const Node& node, size_t i, AttributeList& attributes) {
  constexpr std::array<std::string_view, kernels::kMostChained> kNames = {"activation_1", "activation_2",
                                                                          "activation_3"};
  constexpr std::array<std::string_view, kernels::kMostChained> kParams = {
      "activation_params_1", "activation_params_2", "activation_params_3"};
  const Attribute *name = node.attribute("activation"), *params = node.attribute("activation_params");
  if (name != nullptr) attributes.set(kNames[i], name->s);
  if (params != nullptr) attributes.set(kParams[i], params->floats);
}

void join(const std::vector<Node*>& chain, Editor& editor) {
  AttributeList attributes(editor.arena());
  std::vector<int64_t> groups, strides, pads;
  std::vector<Edge*> inputs = {chain.front()->input(kConvX), chain.back()->input(kConvAddend)};
  for (size_t i = 0; i < chain.size(); ++i) {
    const Node& node = *chain[i];
    const ConvAttrs& a = attrs_of(node);
    groups.push_back(a.groups);
    for (size_t d = 0; d < 2; ++d) strides.push_back(a.window.stride(d));
    for (size_t d = 0; d < 2; ++d) pads.push_back(a.window.pad_begin(d));
    for (size_t d = 0; d < 2; ++d) pads.push_back(a.window.pad_end(d));
    for (size_t input : {kConvW, kConvBias, kConvScale}) inputs.push_back(node.input(input));
    copy_activation(node, i, attributes);
  }
  attributes.set("group", std::span<const int64_t>(groups));
  attributes.set("strides", std::span<const int64_t>(strides));
  attributes.set("pads", std::span<const int64_t>(pads));
  while (inputs.back() == nullptr) inputs.pop_back();
  editor.become(*chain.back(), kPlimsollDomain, "ConvChain", inputs, attributes.list());
}

}  // namespace

bool chain_convolutions(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || !can_be_chained(node)) continue;
      std::vector<Node*> chain = {node};
      while (chain.size() < kernels::kMostChained) {
        const Edge& between = *chain.back()->outputs[0];
        Node* next = editor.only_user(between);
        if (next == nullptr || !can_be_joined(*chain.back(), next, between)) break;
        chain.push_back(next);
      }
      if (chain.size() > 1) join(chain, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
