#include <algorithm>

#include "graph/bodies.h"
#include "graph/op_def.h"
#include "quantize/static.h"

namespace plimsoll {
namespace {

// Goes through the nodes in order; a value that has integers is known by them until somebody needs its
// floats.
class QOperatorRewriter : public StaticRewriter {
 public:
  using StaticRewriter::StaticRewriter;

  void rewrite() {
    each_node([&](Node& node) {
      if (!wants(node) || !quantize(node)) keep_as_float(node);
    });
    for (Edge* output : graph_.outputs) dequantize(output);
  }

 private:
  bool quantize(Node& node) {
    const std::string_view op = node.op_type;
    if (touches_infinities(node)) {
      note_left(node, "a value of it has infinities");
      return false;
    }
    if (op == "Conv") return quantize_conv(node);
    if (op == "MatMul") return quantize_matmul(node);
    if (op == "Gemm") return quantize_gemm(node);
    if (op == "Add" || op == "Mul") return quantize_elementwise(node, 2);
    if (op == "Sigmoid" || op == "LeakyRelu" || op == "AveragePool") return quantize_elementwise(node, 1);
    if (op == "Softmax") return quantize_softmax(node);
    if (op == "Relu" || op == "Clip") return drop_activation(node);
    if (op == "GlobalAveragePool") return quantize_global_pool(node);
    if (op == "Concat") return quantize_concat(node);
    if (op == "Split") return quantize_split(node);
    if (op == "Gather") return is_weight(node.inputs[0]) && pass_on(node, quantize_input(node.inputs[0]));
    if (op == "ArgMax") return quantize_arg_max(node);
    if (op == "Pad") return quantize_pad(node);
    const bool moves = op == "Reshape" || op == "Transpose" || op == "Squeeze" || op == "Unsqueeze" ||
                       op == "Flatten" || (op == "MaxPool" && node.opset >= 12) ||
                       (op == "Resize" && node.opset >= 11);
    if (!moves || node.outputs.size() != 1) return false;
    if (options_.force_all && is_weight(node.inputs[0])) return pass_on(node, quantize_input(node.inputs[0]));
    return pass_on(node, known(node.inputs[0]));
  }

  const QuantizedValue* known(const Edge* value) const {
    const auto found = values_.find(value);
    return found == values_.end() ? nullptr : &found->second;
  }

  // Whether the integers that stand for a value are like those of an activation: weights of products may have
  // another type, and scales per channel.
  bool is_activation(const Edge* value, const QuantizedValue& q) const {
    if (q.axis >= 0) return false;
    return value->data == nullptr || q.q->data->type == options_.activation_type;
  }

  // The integers of an activation, or of a constant that is no weight; null if no range is known.
  const QuantizedValue* quantize_input(Edge* value) {
    if (const QuantizedValue* found = known(value)) return is_activation(value, *found) ? found : nullptr;
    if (value->data != nullptr) {
      if (!is_weight(value)) return nullptr;
      WeightRules rules = weight_rules(false, false);
      rules.reduced = false;
      return &quantize_weight(*value, rules, -1);
    }
    if (!is_float32(value)) return nullptr;  // scales of operators on integers are of 32 bits
    const ScaleEdges* scale = activation_scale(value);
    if (scale == nullptr) return nullptr;
    const std::string name(value->name);
    Edge* q = edge(name + "_quantized", options_.activation_type);
    emit("QuantizeLinear", name + "_QuantizeLinear", {value, scale->scale, scale->zero_point}, {q});
    return &(values_[value] = {q, scale->scale, scale->zero_point, -1});
  }

  // Whether everything is at hand, before the first node is written.
  bool can_quantize(const Edge* value) const {
    if (value == nullptr) return false;
    if (const QuantizedValue* q = known(value)) return is_activation(value, *q);
    if (is_weight(value)) return true;
    return value->data == nullptr && is_float32(value) && statistics_of(value) != nullptr;
  }

  const QuantizedValue* quantize_product_weight(Edge* weight, bool per_channel, int64_t axis,
                                                ElementType type) {
    if (const QuantizedValue* found = known(weight)) return found;
    if (weight->data == nullptr) return quantize_input(weight);
    WeightRules rules = weight_rules(true, per_channel);
    rules.type = type;
    return &quantize_weight(*weight, rules, per_channel ? axis : -1);
  }

  // The output in integers, made by a node of these inputs.
  void finish(Node& node, std::string_view op_type, std::vector<Edge*> inputs, const ScaleEdges& scale,
              std::span<const Attribute> list, std::string_view domain) {
    Edge* y = node.outputs[0];
    Edge* q = edge(std::string(y->name) + "_quantized", options_.activation_type);
    y->producer = nullptr;
    emit(op_type, std::string(node.name) + "_quant", std::move(inputs), {q}, list, domain);
    values_[y] = {q, scale.scale, scale.zero_point, -1};
    note(node, op_type);
  }

  std::vector<float> scales_of(const Edge& scale) const {
    if (context_.reader.plans())
      return std::vector<float>(static_cast<size_t>(scale.data->view().elements()));
    std::vector<float> values;
    for (float x : context_.reader.read(*scale.data, 0, scale.data->view().elements())) values.push_back(x);
    return values;
  }

  // A bias times beta in 32 bits, of alpha times the scales of the product. Each user has its own: they
  // differ in their scales.
  Edge* bias_of(const Edge& bias, const Edge& x_scale, Edge& weight, float alpha = 1, float beta = 1) {
    const int copies = bias_copies_[&bias]++;
    const std::string name = std::string(bias.name) + (copies == 0 ? "" : std::to_string(copies));
    const float input_scale = scales_of(x_scale)[0] * alpha;
    return quantize_bias(bias, name, input_scale, scales_of(*known(&weight)->scale), beta).q;
  }

  bool quantize_conv(Node& node) {
    Edge *x = node.inputs[0], *w = node.inputs[1], *bias = node.input(2);
    if (!can_quantize(x) || !is_weight(w) || statistics_of(node.outputs[0]) == nullptr) return left(node);
    if (bias != nullptr && !is_weight(bias)) return left(node);
    const QuantizedValue qx = *quantize_input(x);
    const bool per_channel = options_.per_channel;
    const QuantizedValue qw =
        *quantize_product_weight(w, per_channel, 0, per_channel ? ElementType::kInt8 : options_.weight_type);
    const ScaleEdges y = *activation_scale(node.outputs[0]);
    std::vector<Edge*> inputs = {qx.q,     qx.scale,      qx.zero_point, qw.q,
                                 qw.scale, qw.zero_point, y.scale,       y.zero_point};
    if (bias != nullptr) inputs.push_back(bias_of(*bias, *qx.scale, *w));
    finish(node, "QLinearConv", inputs, y, node.attributes, "");
    return true;
  }

  bool quantize_matmul(Node& node) {
    Edge *a = node.inputs[0], *b = node.inputs[1];
    if (!can_quantize(a) || !(is_weight(b) || can_quantize(b))) return left(node);
    if (statistics_of(node.outputs[0]) == nullptr) return left(node);
    if (b->data == nullptr && options_.constant_weights_only) return left(node);
    const QuantizedValue qa = *quantize_input(a);
    const bool per_channel = options_.per_channel && b->data != nullptr && b->data->dims.size() == 2;
    const QuantizedValue qb = *quantize_product_weight(b, per_channel, 1, options_.weight_type);
    const ScaleEdges y = *activation_scale(node.outputs[0]);
    finish(node, "QLinearMatMul",
           {qa.q, qa.scale, qa.zero_point, qb.q, qb.scale, qb.zero_point, y.scale, y.zero_point}, y, {}, "");
    return true;
  }

  bool quantize_gemm(Node& node) {
    Edge *a = node.inputs[0], *b = node.inputs[1], *bias = node.input(2);
    if (!can_quantize(a) || !is_weight(b) || statistics_of(node.outputs[0]) == nullptr) return left(node);
    if (bias != nullptr && !is_weight(bias)) return left(node);
    const Attribute* turned = node.attribute("transB");
    const auto factor = [&](std::string_view name) {
      const Attribute* given = node.attribute(name);
      return given == nullptr ? 1.0f : given->f;
    };
    if (bias != nullptr && factor("alpha") == 0) return left(node);
    const QuantizedValue qa = *quantize_input(a);
    const int64_t axis = turned != nullptr && turned->i > 0 ? 0 : 1;
    const QuantizedValue qb = *quantize_product_weight(b, options_.per_channel, axis, options_.weight_type);
    const ScaleEdges y = *activation_scale(node.outputs[0]);
    Edge* q_bias = bias == nullptr ? nullptr : bias_of(*bias, *qa.scale, *b, factor("alpha"), factor("beta"));
    finish(node, "QGemm",
           {qa.q, qa.scale, qa.zero_point, qb.q, qb.scale, qb.zero_point, q_bias, y.scale, y.zero_point}, y,
           AttributeList(graph_.arena(), node).erase("beta").list(), kMicrosoftDomain);
    return true;
  }

  // QLinearAdd and the like: integers, scale and zero point of each input, then those of the output.
  bool quantize_elementwise(Node& node, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!can_quantize(node.inputs[i])) return left(node);
    }
    if (statistics_of(node.outputs[0]) == nullptr) return left(node);
    std::vector<Edge*> inputs;
    for (size_t i = 0; i < count; ++i) {
      const QuantizedValue q = *quantize_input(node.inputs[i]);
      inputs.insert(inputs.end(), {q.q, q.scale, q.zero_point});
    }
    const ScaleEdges y = *activation_scale(node.outputs[0]);
    inputs.insert(inputs.end(), {y.scale, y.zero_point});
    finish(node, fmt::format("QLinear{}", node.op_type), inputs, y, node.attributes, kMicrosoftDomain);
    return true;
  }

  // From 0 to 1 whatever calibration says: 256 steps of 1/256.
  bool quantize_softmax(Node& node) {
    if (!can_quantize(node.inputs[0]) || options_.activation_type == ElementType::kFloat8E4M3FN)
      return left(node);
    const QuantizedValue x = *quantize_input(node.inputs[0]);
    const std::string name(node.outputs[0]->name);
    const float scale = 1.0f / 256;
    const int32_t zero = options_.activation_type == ElementType::kUint8 ? 0 : -128;
    ScaleEdges y;
    y.scale = reals(name + "_scale", node.outputs[0]->facts.type.type, {}, std::span(&scale, 1));
    y.zero_point = whole_numbers(name + "_zero_point", options_.activation_type, {}, std::span(&zero, 1));
    finish(node, "QLinearSoftmax", {x.q, x.scale, x.zero_point, y.scale, y.zero_point}, y,
           AttributeList(graph_.arena(), node).set("opset", int64_t{node.opset}).list(), kMicrosoftDomain);
    return true;
  }

  // What it cuts off has no numbers: its output is its input.
  bool drop_activation(Node& node) {
    const QuantizedValue* x = known(node.inputs[0]);
    const bool made_here = x != nullptr && node.inputs[0]->producer == nullptr && !is_input(node.inputs[0]);
    if (!made_here || options_.activation_symmetric || !is_range_only(node) ||
        users(node.inputs[0]).size() != 1)
      return false;
    const QuantizedValue q = *x;
    values_[node.outputs[0]] = q;
    node.outputs[0]->producer = nullptr;
    note(node, "the range of its input");
    return true;
  }

  bool quantize_global_pool(Node& node) {
    const QuantizedValue* x = known(node.inputs[0]);
    if (x == nullptr) return false;
    const QuantizedValue q = *x;
    const ScaleEdges* own = activation_scale(node.outputs[0]);
    const ScaleEdges y = own != nullptr ? *own : ScaleEdges{q.scale, q.zero_point, {}};
    finish(node, "QLinearGlobalAveragePool", {q.q, q.scale, q.zero_point, y.scale, y.zero_point}, y,
           AttributeList(graph_.arena(), node).set("channels_last", int64_t{0}).list(), kMicrosoftDomain);
    return true;
  }

  bool quantize_concat(Node& node) {
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Edge* e) { return can_quantize(e); }))
      return left(node);
    if (statistics_of(node.outputs[0]) == nullptr) return left(node);
    const ScaleEdges y = *activation_scale(node.outputs[0]);
    std::vector<Edge*> inputs = {y.scale, y.zero_point};
    for (Edge* input : node.inputs) {
      const QuantizedValue q = *quantize_input(input);
      inputs.insert(inputs.end(), {q.q, q.scale, q.zero_point});
    }
    finish(node, "QLinearConcat", inputs, y, node.attributes, kMicrosoftDomain);
    return true;
  }

  bool quantize_split(Node& node) {
    if (!can_quantize(node.inputs[0])) return left(node);
    const QuantizedValue q = *quantize_input(node.inputs[0]);
    std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end()), outputs;
    inputs[0] = q.q;
    for (Edge* output : node.outputs) {
      outputs.push_back(edge(std::string(output->name) + "quantized", options_.activation_type));
      output->producer = nullptr;
      values_[output] = {outputs.back(), q.scale, q.zero_point, -1};
    }
    emit("Split", std::string(node.name) + "_quant", inputs, outputs, node.attributes);
    note(node, "Split of integers");
    return true;
  }

  bool quantize_arg_max(Node& node) {
    const QuantizedValue* x = known(node.inputs[0]);
    if (x == nullptr) return false;
    node.inputs[0] = x->q;
    keep(node);
    return true;
  }

  bool quantize_pad(Node& node) {
    const QuantizedValue* x = known(node.inputs[0]);
    const Attribute* mode = node.attribute("mode");
    const bool is_constant = mode == nullptr || mode->s == "constant";
    if (x == nullptr || node.opset < 11 || (is_constant && node.input(2) != nullptr)) return false;
    const QuantizedValue q = *x;
    if (is_constant) {
      // Padding with 0 is padding with the zero point.
      std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
      inputs.resize(std::max<size_t>(inputs.size(), 3));
      inputs[2] = q.zero_point;
      node.inputs = graph_.arena().copy(inputs);
    }
    return pass_on(node, &q);
  }

  // The node itself moves integers.
  bool pass_on(Node& node, const QuantizedValue* x) {
    if (x == nullptr || !is_activation(node.inputs[0], *x)) return false;
    const QuantizedValue q = *x;
    Edge* y = node.outputs[0];
    Edge* made = edge(std::string(y->name) + "_quantized", options_.activation_type);
    node.inputs[0] = q.q;
    node.outputs[0] = made;
    made->producer = &node;
    y->producer = nullptr;
    values_[y] = {made, q.scale, q.zero_point, -1};
    keep(node);
    note(node, "the same on integers");
    return true;
  }

  bool left(const Node& node) {
    note_left(node, "its inputs or outputs have no range, or are no floats");
    return false;
  }

  void keep_as_float(Node& node) {
    for (Edge* input : node.inputs) {
      if (input != nullptr && input->data == nullptr) dequantize(input);
    }
    for (Edge* used : captured_edges(node)) dequantize(used);
    keep(node);
  }

  void dequantize(Edge* value) {
    const QuantizedValue* q = known(value);
    if (q == nullptr || value->data != nullptr || value->producer != nullptr || is_input(value)) return;
    emit("DequantizeLinear", std::string(value->name) + "_DequantizeLinear", {q->q, q->scale, q->zero_point},
         {value});
  }

  std::unordered_map<const Edge*, int> bias_copies_;
};

}  // namespace

void quantize_qoperator(QuantizeContext& context, const StaticOptions& options, Statistics statistics) {
  QOperatorRewriter(context, options, std::move(statistics)).rewrite();
  drop_unused_initializers(context.graph);
  sign_as_quantized(context.graph);
}

}  // namespace plimsoll
