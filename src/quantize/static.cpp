#include "quantize/static.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "graph/bodies.h"
#include "graph/op_def.h"

namespace plimsoll {

const std::set<std::string, std::less<>>& static_op_types() {
  static const std::set<std::string, std::less<>> types = {"Add",
                                                           "ArgMax",
                                                           "AveragePool",
                                                           "BatchNormalization",
                                                           "Clip",
                                                           "Concat",
                                                           "Conv",
                                                           "ConvTranspose",
                                                           "CumSum",
                                                           "EmbedLayerNormalization",
                                                           "Flatten",
                                                           "Gather",
                                                           "GatherElements",
                                                           "Gemm",
                                                           "GlobalAveragePool",
                                                           "LeakyRelu",
                                                           "MatMul",
                                                           "MaxPool",
                                                           "Mul",
                                                           "InstanceNormalization",
                                                           "Pad",
                                                           "Relu",
                                                           "Reshape",
                                                           "Resize",
                                                           "LayerNormalization",
                                                           "Sigmoid",
                                                           "Slice",
                                                           "Softmax",
                                                           "Split",
                                                           "Squeeze",
                                                           "TopK",
                                                           "Transpose",
                                                           "Unsqueeze",
                                                           "Where"};
  return types;
}

namespace {

bool has_16_bits(ElementType type) {
  return type == ElementType::kInt16 || type == ElementType::kUint16;
}
bool has_4_bits(ElementType type) {
  return type == ElementType::kInt4 || type == ElementType::kUint4;
}

// Whether a value that may be quantized is of floats of 16 bits.
bool has_halves(const Graph& graph, const StaticOptions& options) {
  const auto is_half = [](const Edge* edge) {
    return edge != nullptr && edge->facts.type.kind == ValueKind::kTensor &&
           edge->facts.type.type == ElementType::kFloat16;
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node* node) {
    return options.filter.wants(*node) && (std::any_of(node->inputs.begin(), node->inputs.end(), is_half) ||
                                           std::any_of(node->outputs.begin(), node->outputs.end(), is_half));
  });
}

}  // namespace

void settle_static_options(const Graph& graph, bool qdq, StaticOptions& options) {
  const ElementType a = options.activation_type, w = options.weight_type;
  const bool is_float8 = a == ElementType::kFloat8E4M3FN;
  const auto reject = [&](const char* why) {
    fail(ErrorCode::kInvalidArgument,
         "static quantization: activations of type {} and weights of type {}: {}", element_type_name(a),
         element_type_name(w), why);
  };
  if (is_float8 != (w == ElementType::kFloat8E4M3FN)) reject("expected both or none of them to be float8");
  if (!is_float8) {
    integer_range(a, false, false);
    integer_range(w, options.reduce_range, false);
    if (has_4_bits(a)) reject("expected activations of 8 or 16 bits");
  }
  if (a == ElementType::kInt8 && w == ElementType::kUint8)
    reject("expected signed weights with signed activations");
  if (!qdq && (has_16_bits(a) || has_16_bits(w) || has_4_bits(w) || is_float8))
    reject("expected the format of QuantizeLinear and DequantizeLinear for other than 8 bits");
  const int opset = graph.opset("");
  if (options.block_size < 0)
    fail(ErrorCode::kInvalidArgument, "weights in blocks: expected a size above 0, found {}",
         options.block_size);
  if (options.block_size > 0 && (!qdq || opset < 21 || is_float8))
    fail(ErrorCode::kInvalidArgument,
         "weights in blocks: expected integers with QuantizeLinear and DequantizeLinear in a model of opset "
         "21 or "
         "newer, found {} of opset {}",
         is_float8 ? "float8"
         : qdq     ? "integers"
                   : "operators on integers",
         opset);
  // What ai.onnx has not in this version, com.microsoft has.
  if ((opset < 21 && (has_16_bits(a) || has_16_bits(w) || has_4_bits(w))) ||
      (opset < 13 && options.per_channel) || (opset < 19 && (is_float8 || has_halves(graph, options))))
    options.microsoft_domain = true;
  // ONNX Runtime makes these operators of pairs too, and refuses a model where it cannot.
  if (opset < 10)
    fail(ErrorCode::kInvalidArgument,
         "static quantization: expected a model of opset 10 or newer, which has operators on integers, "
         "found {}; onnx.version_converter makes a newer one of it",
         opset);
  if (options.filter.op_types.empty()) options.filter.op_types = static_op_types();
}

std::vector<std::string> values_to_calibrate(const Graph& graph, const StaticOptions& options) {
  std::set<std::string> names;
  const auto add = [&](const Edge* edge) {
    if (edge == nullptr || edge->data != nullptr || edge->facts.type.kind != ValueKind::kTensor) return;
    const ElementType type = edge->facts.type.type;
    if (type == ElementType::kFloat || type == ElementType::kFloat16) names.insert(std::string(edge->name));
  };
  for (const Node* node : graph.nodes) {
    if (options.filter.op_types.count(node->op_type) == 0) continue;
    for (const Edge* edge : node->inputs) add(edge);
    for (const Edge* edge : node->outputs) add(edge);
  }
  return {names.begin(), names.end()};
}

StaticRewriter::StaticRewriter(QuantizeContext& context, const StaticOptions& options, Statistics statistics)
    : Rewriter(context), options_(options), statistics_(std::move(statistics)) {
  for (Node* node : graph_.nodes) {
    for (const Edge* input : node->inputs) {
      if (input != nullptr) users_[input].push_back(node);
    }
    for (const Edge* used : captured_edges(*node)) users_[used].push_back(node);
  }
  inputs_ = {graph_.inputs.begin(), graph_.inputs.end()};
  outputs_ = {graph_.outputs.begin(), graph_.outputs.end()};
  pass_ranges_back();
}

const std::vector<Node*>& StaticRewriter::users(const Edge* value) const {
  static const std::vector<Node*> nobody;
  const auto found = users_.find(value);
  return found == users_.end() ? nobody : found->second;
}

// What an activation cuts off needs no numbers before it either; a Softmax is from 0 to 1.
void StaticRewriter::pass_ranges_back() {
  for (const Node* node : graph_.nodes) {
    if (!wants(*node) || !node->domain.empty()) continue;
    if (node->op_type == "Softmax") {
      statistics_[std::string(node->outputs[0]->name)] = {{0, 1}, 0};
    } else if ((node->op_type == "Clip" || node->op_type == "Relu") && users(node->inputs[0]).size() == 1) {
      const auto input = statistics_.find(node->inputs[0]->name),
                 output = statistics_.find(node->outputs[0]->name);
      if (input != statistics_.end() && output != statistics_.end()) input->second = output->second;
    }
  }
}

const ValueStatistics* StaticRewriter::statistics_of(const Edge* value) const {
  const auto found = statistics_.find(value->name);
  return found == statistics_.end() || found->second.has_infinities ? nullptr : &found->second;
}

bool StaticRewriter::holds_infinities(const Edge& constant) {
  const auto [known, is_new] = infinite_.try_emplace(&constant, false);
  if (is_new && is_weight(&constant)) {
    context_.reader.each(*constant.data, [&](std::span<const float> x, int64_t) {
      known->second |= std::any_of(x.begin(), x.end(), [](float v) { return std::isinf(v); });
    });
  }
  return known->second;
}

bool StaticRewriter::touches_infinities(const Node& node) {
  constexpr std::string_view kWithWeights[] = {"Conv",
                                               "ConvTranspose",
                                               "Gemm",
                                               "MatMul",
                                               "BatchNormalization",
                                               "InstanceNormalization",
                                               "LayerNormalization"};
  const bool has_weights =
      std::find(std::begin(kWithWeights), std::end(kWithWeights), node.op_type) != std::end(kWithWeights);
  const auto is_infinite = [&](const Edge* edge) {
    if (edge == nullptr) return false;
    if (edge->data != nullptr) return !has_weights && holds_infinities(*edge);
    const auto found = statistics_.find(edge->name);
    return found != statistics_.end() && found->second.has_infinities;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_infinite) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_infinite);
}

std::optional<LinearParameters> StaticRewriter::activation_parameters(const Edge* value) const {
  const ValueStatistics* found = statistics_of(value);
  if (found == nullptr) return std::nullopt;
  if (options_.activation_type == ElementType::kFloat8E4M3FN)
    return LinearParameters{found->deviation > 0 ? float8_scale(found->deviation) : 1.0f, 0};
  const bool symmetric = options_.activation_symmetric;
  const IntegerRange integers = integer_range(options_.activation_type, false, symmetric);
  if (options_.activation_restricted && options_.activation_type == ElementType::kUint8 && !symmetric)
    return snapped_parameters(found->range, integers, options_.least_range);
  return linear_parameters(found->range, integers, symmetric, value->facts.type.type, options_.least_range);
}

const StaticRewriter::ScaleEdges* StaticRewriter::activation_scale(const Edge* value) {
  const auto known = scales_.find(value);
  if (known != scales_.end()) return &known->second;
  const std::optional<LinearParameters> p = activation_parameters(value);
  if (!p) return nullptr;
  const std::string name(value->name);
  ScaleEdges made;
  made.parameters = *p;
  made.zero_point =
      whole_numbers(name + "_zero_point", options_.activation_type, {}, std::span(&p->zero_point, 1));
  made.scale = reals(name + "_scale", value->facts.type.type, {}, std::span(&p->scale, 1));
  return &(scales_[value] = made);
}

// All channels have one zero point, which operators on integers need: per channel is symmetric.
WeightRules StaticRewriter::weight_rules(bool is_weight, bool per_channel) const {
  const ElementType type = is_weight ? options_.weight_type : options_.activation_type;
  const bool is_signed =
      type == ElementType::kInt8 || type == ElementType::kInt16 || type == ElementType::kInt4;
  const bool symmetric = per_channel || (is_weight ? options_.weight_symmetric.value_or(is_signed)
                                                   : options_.activation_symmetric);
  return {type, symmetric, options_.reduce_range, options_.least_range};
}

QuantizedValue StaticRewriter::quantize_bias(const Edge& bias, const std::string& name, float input_scale,
                                             std::span<const float> weight_scales, float beta) {
  std::vector<float> scales;
  for (float scale : weight_scales) scales.push_back(input_scale * scale);
  const bool per_channel = scales.size() > 1;
  const int64_t count = bias.data->view().elements();
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  context_.reader.each(*bias.data, [&](std::span<const float> x, int64_t first) {
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t at = static_cast<size_t>(first) + i;
      const double scaled =
          std::nearbyint(double{x[i]} * beta / scales[per_channel ? at % scales.size() : 0]);
      const double held = std::clamp(scaled, double{std::numeric_limits<int32_t>::min()},
                                     double{std::numeric_limits<int32_t>::max()});
      numbers[at] = std::isnan(held) ? 0 : static_cast<int32_t>(held);
    }
  });
  const int64_t length[] = {static_cast<int64_t>(scales.size())};
  const std::span<const int64_t> none;
  const std::vector<int32_t> zeros(scales.size());
  QuantizedValue made;
  made.axis = per_channel ? 0 : -1;
  made.q = whole_numbers(name + "_quantized", ElementType::kInt32, bias.data->dims, numbers);
  made.scale = reals(name + "_quantized_scale", bias.data->type, length, scales);
  made.zero_point =
      whole_numbers(name + "_quantized_zero_point", ElementType::kInt32, per_channel ? length : none, zeros);
  return made;
}

bool StaticRewriter::adjust_for_bias(const Edge& bias, float input_scale,
                                     std::span<LinearParameters> weights) {
  constexpr double kSlack = 1.0001;
  const double numbers = 2.0 * std::numeric_limits<int32_t>::max();
  std::vector<double> largest(weights.size());
  context_.reader.each(*bias.data, [&](std::span<const float> x, int64_t first) {
    for (size_t i = 0; i < x.size(); ++i) {
      double& at = largest[weights.size() > 1 ? (static_cast<size_t>(first) + i) % weights.size() : 0];
      at = std::max(at, std::fabs(double{x[i]}));
    }
  });
  bool changed = false;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double least = kSlack * (2.0 * largest[i]) / numbers,
                 found = double{input_scale} * weights[i].scale;
    if (found >= least || found <= 0) continue;
    weights[i].scale = static_cast<float>(weights[i].scale * (least / found));
    changed = true;
  }
  return changed;
}

bool StaticRewriter::is_range_only(const Node& node) const {
  const ValueStatistics* y = statistics_of(node.outputs[0]);
  if (node.op_type == "Relu") return y != nullptr && y->range.low >= 0;
  if (node.op_type != "Clip") return false;
  if (const Attribute* low = node.attribute("min"); low != nullptr) return low->f <= 0;
  const Edge* low = node.input(1);
  if (low == nullptr) return true;
  const TensorView* view = low->data != nullptr ? low->constant : low->facts.constant;
  if (view == nullptr && low->producer != nullptr && low->producer->op_type == "Constant") {
    const Attribute* value = low->producer->attribute("value");
    if (value == nullptr || value->tensor == nullptr || value->tensor->type != ElementType::kFloat)
      return false;
    float number = 1;
    std::memcpy(&number, value->tensor->bytes.data(), sizeof number);
    return number <= 0;
  }
  if (view == nullptr || view->type != ElementType::kFloat || view->elements() != 1) return false;
  float number;
  std::memcpy(&number, view->data, sizeof number);
  return number <= 0;
}

}  // namespace plimsoll
