#include "optimize/layout_rules.h"

#include <algorithm>
#include <array>

#include "optimize/layout_operands.h"
#include "optimize/match.h"

namespace plimsoll {

int64_t axis_in_last(int64_t axis, int64_t rank) {
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

std::vector<int64_t> to_last_permutation(int64_t rank) {
  std::vector<int64_t> perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> to_first_permutation(int64_t rank) {
  return inverse_permutation(to_last_permutation(rank));
}

bool is_to_last(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  return is_op(&node, "Transpose") && rank >= 3 && permutation_of(node) == to_last_permutation(rank);
}

bool is_to_first(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  return is_op(&node, "Transpose") && rank >= 3 && permutation_of(node) == to_first_permutation(rank);
}

namespace {

constexpr std::array kUnary = {
    "Relu",      "LeakyRelu", "Sigmoid",  "Tanh",     "Elu",   "Selu", "Celu",       "HardSigmoid",
    "HardSwish", "Gelu",      "Softplus", "Softsign", "Exp",   "Log",  "Sqrt",       "Abs",
    "Neg",       "Erf",       "Floor",    "Ceil",     "Round", "Sign", "Reciprocal", "Cast",
    "Clip",      "Identity",  "Not",      "IsNaN",    "Mish",  "Sin",  "Cos",        "ThresholdedRelu"};
constexpr std::array kBroadcasting = {
    "Add",   "Sub",   "Mul",     "Div",  "Pow", "Min", "Max", "Sum", "Mean",           "PRelu",
    "Where", "Equal", "Greater", "Less", "And", "Or",  "Xor", "Mod", "GreaterOrEqual", "LessOrEqual"};
constexpr std::array kWindowed = {"Conv", "ConvTranspose", "MaxPool", "AveragePool"};

template <size_t N>
bool among(const std::array<const char*, N>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool output_is_used(const Node& node, size_t i, const Editor& editor) {
  return i < node.outputs.size() && node.outputs[i] != nullptr && editor.use_count(*node.outputs[i]) > 0;
}

LayoutPorts ports(const Node& node, LayoutChoice choice, std::initializer_list<size_t> inputs) {
  LayoutPorts result{choice, std::vector<bool>(node.inputs.size()), std::vector<bool>(node.outputs.size())};
  for (size_t i : inputs) {
    if (node.input(i) != nullptr) result.inputs[i] = true;
  }
  if (!node.outputs.empty()) result.outputs[0] = true;
  return result;
}

LayoutPorts broadcasting_ports(const Node& node) {
  if (node.opset < 7) return {};
  const int64_t rank = rank_of(node.outputs[0]);
  LayoutPorts result = ports(node, LayoutChoice::kEither, {});
  bool has_port = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge* input = node.input(i);
    if (input == nullptr) continue;
    result.inputs[i] = rank_of(input) == rank;
    has_port |= result.inputs[i] && !is_constant(input);
    if (!result.inputs[i] && !is_constant(input) && !is_single_element(input)) return {};
  }
  return has_port ? result : LayoutPorts{};
}

LayoutPorts same_rank_ports(const Node& node) {
  LayoutPorts result = ports(node, LayoutChoice::kEither, {});
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (rank_of(node.input(i)) != rank_of(node.outputs[0])) return {};
    result.inputs[i] = true;
  }
  return result;
}

LayoutPorts split_ports(const Node& node) {
  LayoutPorts result = ports(node, LayoutChoice::kEither, {0});
  result.outputs.assign(node.outputs.size(), true);
  return result;
}

// What is left must be in the same order either way; otherwise the result is channels-last too.
LayoutPorts reduced_ports(const Node& node, const std::optional<std::vector<int64_t>>& axes, bool keeps) {
  const int64_t rank = rank_of(node.input(0));
  if (!axes) return {};
  LayoutPorts result = ports(node, LayoutChoice::kEither, {0});
  if (keeps) return result;
  const auto reduced = [&](int64_t axis) {
    return std::find(axes->begin(), axes->end(), axis) != axes->end();
  };
  bool all_spatial = true;
  for (int64_t i = 2; i < rank; ++i) all_spatial &= reduced(i);
  if (reduced(1) || all_spatial) {
    result.outputs[0] = false;
    return result;
  }
  return !reduced(0) && rank_of(node.outputs[0]) >= 3 ? result : LayoutPorts{};
}

// Axes of (N, C, ...) stay in front, so that only spatial ones come.
LayoutPorts unsqueezed_ports(const Node& node) {
  const auto axes = axes_of(node, rank_of(node.outputs[0]));
  if (!axes || std::any_of(axes->begin(), axes->end(), [](int64_t a) { return a < 2; })) return {};
  return ports(node, LayoutChoice::kEither, {0});
}

LayoutPorts onnx_ports(const Node& node, const Editor& editor) {
  const std::string_view op = node.op_type;
  const bool f32 = is_f32(node.input(0));
  if (among(kWindowed, op)) {
    if (!f32 || output_is_used(node, 1, editor)) return {};
    return ports(node, LayoutChoice::kLast, {0});
  }
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool")
    return f32 ? ports(node, LayoutChoice::kEither, {0}) : LayoutPorts{};
  if (among(kUnary, op)) return ports(node, LayoutChoice::kEither, {0});
  if (among(kBroadcasting, op)) return broadcasting_ports(node);
  if (op == "Concat") return same_rank_ports(node);
  if (op == "Split") return split_ports(node);
  if (op == "Shape" || op == "Size") {
    LayoutPorts result = ports(node, LayoutChoice::kEither, {0});
    result.outputs[0] = false;
    return result;
  }
  if (op == "Slice" || op == "Pad" || op == "Resize" || op == "Upsample")
    return can_permute_operands(node) ? ports(node, LayoutChoice::kEither, {0}) : LayoutPorts{};
  if (op == "Softmax" || op == "LogSoftmax") {
    return node.opset >= 13 ? ports(node, LayoutChoice::kEither, {0}) : LayoutPorts{};
  }
  if (op.starts_with("Reduce"))
    return reduced_ports(node, reduce_axes(node), attribute_or(node, "keepdims", int64_t{1}) != 0);
  if (op == "Squeeze") return reduced_ports(node, axes_of(node, rank_of(node.input(0))), false);
  if (op == "Unsqueeze") return unsqueezed_ports(node);
  if (op == "Reshape")
    return can_permute_reshape(node) ? ports(node, LayoutChoice::kEither, {0}) : LayoutPorts{};
  return {};
}

}  // namespace

LayoutPorts layout_ports(const Node& node, const Editor& editor) {
  if (node.inputs.empty() || node.outputs.empty() || node.outputs[0] == nullptr) return {};
  const bool broadcasts = node.domain.empty() && among(kBroadcasting, node.op_type);
  if (rank_of(broadcasts ? node.outputs[0] : node.input(0)) < 3) return {};
  if (attribute_or(node, "channels_last", int64_t{0}) != 0) return {};
  if (is_to_last(node)) {
    LayoutPorts result = ports(node, LayoutChoice::kLast, {0});
    result.outputs[0] = false;
    return result;
  }
  if (is_to_first(node)) return ports(node, LayoutChoice::kLast, {});
  if (node.domain.empty()) return onnx_ports(node, editor);
  if (is_op(&node, "FusedConv", kPlimsollDomain)) return ports(node, LayoutChoice::kLast, {0, 3});
  if (is_op(&node, "ScaleShift", kPlimsollDomain)) return ports(node, LayoutChoice::kEither, {0, 3});
  if (is_op(&node, "Silu", kPlimsollDomain)) return ports(node, LayoutChoice::kEither, {0});
  return {};
}

void adapt_to_channels_last(Node& node, Editor& editor, std::vector<Edge*>& inputs,
                            AttributeList& attributes) {
  const std::string_view op = node.op_type;
  if (!node.domain.empty()) {
    if (op != "Silu") attributes.set("channels_last", int64_t{1});
    return;
  }
  const int64_t rank = rank_of(node.input(0));
  if (among(kWindowed, op) || op.starts_with("Global")) attributes.set("channels_last", int64_t{1});
  if (among(kBroadcasting, op)) permute_small_operands(node, editor, inputs);
  if (op == "Concat" || op == "Split" || op == "Softmax" || op == "LogSoftmax") {
    const int64_t fallback = op == "Split" ? 0 : op == "Concat" ? 1 : -1;
    int64_t axis = attribute_or(node, "axis", fallback);
    if (axis < 0) axis += rank;
    attributes.set("axis", axis_in_last(axis, rank));
  }
  if (op == "Slice" || op == "Pad" || op == "Resize" || op == "Upsample")
    permute_operands(node, editor, inputs, attributes);
  if (op.starts_with("Reduce")) permute_axes(*reduce_axes(node), rank, editor, inputs, attributes);
  if (op == "Squeeze") permute_axes(*axes_of(node, rank), rank, editor, inputs, attributes);
  if (op == "Unsqueeze") {
    const int64_t out_rank = rank_of(node.outputs[0]);
    permute_axes(*axes_of(node, out_rank), out_rank, editor, inputs, attributes);
  }
  if (op == "Reshape") permute_reshape(node, editor, inputs);
  if (op == "Shape") permute_shape_output(node, editor, attributes);
}

}  // namespace plimsoll
