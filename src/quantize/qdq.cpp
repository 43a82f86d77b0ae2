#include <algorithm>

#include "graph/op_def.h"
#include "quantize/static.h"

namespace plimsoll {
namespace {

// Marks first, in the order of the nodes, then writes: what a tensor is marked as may depend on what comes
// later.
class QdqRewriter : public StaticRewriter {
 public:
  using StaticRewriter::StaticRewriter;

  void rewrite() {
    const std::vector<Node*> nodes(graph_.nodes.begin(), graph_.nodes.end());
    int64_t done = 0;
    for (Node* node : nodes) {
      if (wants(*node)) mark(*node);
      if (context_.progress) context_.progress(++done, static_cast<int64_t>(nodes.size()) * 2);
    }
    std::erase_if(biases_, [](const Bias& bias) { return bias.weight == nullptr; });
    find_weight_parameters();
    graph_.nodes.clear();
    for (Node* node : nodes) {
      if (removed_.count(node) == 0) keep(*node);
    }
    write_normal(done, static_cast<int64_t>(nodes.size()));
    write_shared();
    if (options_.quantize_bias) write_biases();
    graph_.sort();
  }

 private:
  struct Mark {
    bool is_weight = false;
    int64_t axis = -1, block = 0;
    const Edge* provider = nullptr;  // whose scale it takes
    bool is_done = false;
  };
  struct Bias {
    Edge* bias;
    Node* node;
    Edge *input, *weight;
    float beta;
  };

  // ---- marks ----------------------------------------------------------------------------------

  bool can_be_quantized(const Edge* edge) const {
    if (edge == nullptr) return false;
    return edge->data != nullptr ? is_weight(edge) && edge->data->type != ElementType::kBFloat16
                                 : is_float(edge);
  }
  bool is_marked(const Edge* edge) const { return edge != nullptr && marks_.count(edge) > 0; }
  void put(Edge* edge, const Mark& mark) {
    if (marks_.count(edge) == 0) order_.push_back(edge);
    marks_[edge] = mark;
  }
  void mark_activation(Edge* edge) {
    if (can_be_quantized(edge) && !is_marked(edge)) put(edge, {});
  }
  void mark_weight(Edge* edge, int64_t axis, std::string_view op_type) {
    if (!can_be_quantized(edge)) return;
    if (edge->data != nullptr && options_.per_channel) {
      const auto given = options_.channel_axes.find(op_type);
      if (given != options_.channel_axes.end()) axis = given->second;
      const auto rank = static_cast<int64_t>(edge->data->dims.size());
      if (axis < 0) axis += rank;
      if (axis >= 0 && axis < rank) return put(edge, {true, axis, 0, nullptr});
    }
    if (!is_marked(edge)) put(edge, {true, -1, 0, nullptr});
  }
  void mark_like(Edge* output, const Edge* input) {
    if (can_be_quantized(output)) put(output, {false, -1, 0, input});
  }
  void mark_bias(Node& node, Edge* bias, Edge* input, Edge* weight, float beta = 1) {
    if (!is_weight(bias) || bias->data->type == ElementType::kBFloat16) return;
    biases_.push_back({bias, &node, input, weight, beta});
  }
  bool keeps_output(const Node& node) const { return options_.output_excluded.count(node.op_type) > 0; }
  void mark_outputs(const Node& node) {
    if (keeps_output(node)) return;
    for (Edge* output : node.outputs) mark_activation(output);
  }

  void mark(Node& node) {
    const std::string_view op = node.op_type;
    if (op == "QuantizeLinear" || op == "DequantizeLinear") return;
    if (touches_infinities(node)) return note_left(node, "a value of it has infinities");
    const size_t before = marks_.size();
    if (op == "Conv" || op == "ConvTranspose") {
      mark_activation(node.inputs[0]);
      mark_outputs(node);
      mark_weight(node.inputs[1], op == "Conv" ? 0 : 1, {});
      mark_bias(node, node.input(2), node.inputs[0], node.inputs[1]);
    } else if (op == "Gemm") {
      mark_gemm(node);
    } else if (op == "MatMul") {
      if (options_.constant_weights_only && node.inputs[1]->data == nullptr)
        return note_left(node, "no constant");
      for (Edge* input : node.inputs) {
        if (input->data != nullptr) {
          mark_weight(input, 1, op);
        } else {
          mark_activation(input);
        }
      }
      mark_outputs(node);
    } else if (op == "Relu" || op == "Clip") {
      mark_removable(node);
    } else if (op == "Gather" || op == "GatherElements") {
      if (is_weight(node.inputs[0]) || options_.force_all) {
        mark_activation(node.inputs[0]);
        mark_like(node.outputs[0], node.inputs[0]);
      } else if (is_marked(node.inputs[0])) {
        mark_like(node.outputs[0], node.inputs[0]);
      }
    } else if (passes_data_on(node)) {
      if (options_.force_all) mark_activation(node.inputs[0]);
      if (is_marked(node.inputs[0]) && !keeps_output(node)) mark_like(node.outputs[0], node.inputs[0]);
    } else if (op == "Split") {
      mark_activation(node.inputs[0]);
      if (!keeps_output(node)) {
        for (Edge* output : node.outputs) mark_like(output, node.inputs[0]);
      }
    } else if (op == "Where") {
      if (options_.force_all) {
        mark_activation(node.inputs[1]);
        mark_activation(node.inputs[2]);
      }
      if (is_marked(node.inputs[1]) && is_marked(node.inputs[2])) mark_outputs(node);
    } else if (op == "InstanceNormalization" || op == "LayerNormalization" || op == "BatchNormalization") {
      mark_activation(node.inputs[0]);
      if (node.inputs[1]->data != nullptr) {
        mark_weight(node.inputs[1], 1, op);
      } else {
        mark_activation(node.inputs[1]);
      }
      if (node.input(2) != nullptr) mark_bias(node, node.inputs[2], node.inputs[0], node.inputs[1]);
      mark_outputs(node);
    } else if (op == "Resize" && node.opset < 11) {
    } else if (op == "MaxPool") {  // before opset 12 it has no integers
    } else if (op == "Pad") {
      mark_pad(node);
    } else {
      for (Edge* input : node.inputs) mark_activation(input);
      mark_outputs(node);
    }
    if (marks_.size() > before) note(node, "QuantizeLinear, DequantizeLinear");
  }

  bool passes_data_on(const Node& node) const {
    constexpr std::string_view kOps[] = {"AveragePool", "Flatten",   "Reshape", "Slice",
                                         "Squeeze",     "Transpose", "TopK",    "Unsqueeze"};
    if (node.op_type == "Resize") return node.opset >= 11;
    if (node.op_type == "MaxPool")
      return node.opset >= 12 && options_.activation_type != ElementType::kFloat8E4M3FN;
    return std::find(std::begin(kOps), std::end(kOps), node.op_type) != std::end(kOps);
  }

  void mark_gemm(Node& node) {
    mark_activation(node.inputs[0]);
    mark_outputs(node);
    const Attribute* turned = node.attribute("transB");
    mark_weight(node.inputs[1], turned != nullptr && turned->i > 0 ? 0 : 1, {});
    if (!is_weight(node.input(2))) return;
    const Attribute* beta = node.attribute("beta");
    mark_bias(node, node.inputs[2], node.inputs[0], node.inputs[1], beta == nullptr ? 1.0f : beta->f);
  }

  // Whoever makes the input makes the output instead: what the activation cuts off has no numbers.
  void mark_removable(Node& node) {
    Edge *x = node.inputs[0], *y = node.outputs[0];
    if (!is_marked(x)) return;
    const bool is_removable = !options_.activation_symmetric && !options_.keep_activations &&
                              is_range_only(node) && statistics_of(y) != nullptr && users(x).size() == 1 &&
                              !is_output(x) && !is_input(x) && x->producer != nullptr;
    if (is_removable) {
      Node* producer = x->producer;
      std::replace(producer->outputs.begin(), producer->outputs.end(), x, y);
      y->producer = producer;
      x->producer = nullptr;
      marks_.erase(x);
      removed_.insert(&node);
    } else {
      mark_activation(x);
    }
    if (!keeps_output(node)) mark_activation(y);
  }

  void mark_pad(Node& node) {
    for (Edge* input : node.inputs) mark_activation(input);
    if (keeps_output(node)) return;
    const Attribute* mode = node.attribute("mode");
    const bool is_constant = mode == nullptr || mode->s == "constant";
    if (is_constant && !pads_with_zero(node)) return mark_activation(node.outputs[0]);
    mark_like(node.outputs[0], node.inputs[0]);
  }
  static bool pads_with_zero(const Node& node) {
    if (const Attribute* value = node.attribute("value"); node.opset < 11)
      return value == nullptr || value->f == 0;
    const Edge* value = node.input(2);
    if (value == nullptr) return true;
    if (value->data == nullptr || value->data->type != ElementType::kFloat || value->data->bytes.size() != 4)
      return false;
    float number;
    std::memcpy(&number, value->data->bytes.data(), sizeof number);
    return number == 0;
  }

  // ---- weights --------------------------------------------------------------------------------

  void find_weight_parameters() {
    for (Edge* edge : order_) {
      if (!is_marked(edge) || edge->data == nullptr) continue;
      Mark& mark = marks_[edge];
      WeightRules rules = weight_rules(mark.is_weight, mark.axis >= 0);
      if (mark.is_weight && options_.block_size > 0) {
        cut_into_blocks(*edge, mark);
        rules.reduced = false;
      }
      weight_parameters_[edge] = weight_parameters(*edge, rules, mark.axis, mark.block);
    }
    if (!options_.adjust_weights_for_bias || !options_.quantize_bias) return;
    for (const Bias& bias : biases_) {
      const auto weight = weight_parameters_.find(bias.weight);
      const bool is_signed =
          options_.weight_type == ElementType::kInt8 || options_.weight_type == ElementType::kInt16;
      if (weight == weight_parameters_.end() || !is_signed || !is_marked(bias.input)) continue;
      if (marks_[bias.weight].block > 0) continue;
      const auto has_zero = [](const LinearParameters& p) { return p.zero_point == 0; };
      if (!std::all_of(weight->second.begin(), weight->second.end(), has_zero)) continue;
      if (const auto scale = input_scale(bias)) adjust_for_bias(*bias.bias, *scale, weight->second);
    }
  }

  void cut_into_blocks(const Edge& weight, Mark& mark) const {
    if (weight.data->dims.size() != 2)
      fail(ErrorCode::kInvalidArgument,
           "weights in blocks: expected matrices, found '{}' of rank {}; leave its nodes out", weight.name,
           weight.data->dims.size());
    mark.block = options_.block_size;
    mark.axis = std::max<int64_t>(mark.axis, 0);
  }

  std::optional<float> input_scale(const Bias& bias) {
    const Edge* input = bias.input;
    while (is_marked(input) && marks_[input].provider != nullptr) input = marks_[input].provider;
    if (const auto weight = weight_parameters_.find(input); weight != weight_parameters_.end())
      return weight->second[0].scale;
    const auto parameters = activation_parameters(input);
    if (!parameters || !is_marked(input)) return std::nullopt;
    return parameters->scale;
  }

  // ---- nodes ----------------------------------------------------------------------------------

  std::string_view domain() const {
    return options_.microsoft_domain ? kMicrosoftDomain : std::string_view();
  }
  std::span<const Attribute> axis_attribute(int64_t axis, int64_t block = 0) {
    if (axis < 0) return {};
    AttributeList list = attributes().set("axis", axis);
    if (block > 0) list.set("block_size", block);
    return graph_.arena().copy(list.list());
  }

  void write_normal(int64_t done, int64_t more) {
    int64_t written = 0;
    for (Edge* edge : order_) {
      if (context_.progress)
        context_.progress(done + written++ * more / static_cast<int64_t>(order_.size()), done + more);
      if (!is_marked(edge) || marks_[edge].provider != nullptr) continue;
      if (edge->data != nullptr) {
        write_weight(*edge);
      } else if (const ScaleEdges* scale = activation_scale(edge); scale != nullptr) {
        write_pair(*edge, {nullptr, scale->scale, scale->zero_point, -1});
      } else {
        fail(ErrorCode::kInvalidArgument, "value '{}': expected a range from calibration, found none",
             edge->name);
      }
    }
  }

  // Until nothing changes: what gives a scale may take its own from another.
  void write_shared() {
    for (bool again = true; again;) {
      again = false;
      for (Edge* edge : order_) {
        if (!is_marked(edge) || marks_[edge].provider == nullptr || marks_[edge].is_done) continue;
        const auto provider = values_.find(marks_[edge].provider);
        if (provider == values_.end()) continue;
        write_pair(*edge, {nullptr, provider->second.scale, provider->second.zero_point, -1});
        again = true;
      }
    }
  }

  void use_instead(const Edge* old, Edge* now) {
    for (Node* node : users(old)) {
      if (removed_.count(node) > 0) continue;
      for (Edge*& input : node->inputs) {
        if (input == old) input = now;
      }
    }
  }

  void write_weight(Edge& weight) {
    const Mark& mark = marks_[&weight];
    const std::string name(weight.name);
    Edge* floats = edge(name + "_DequantizeLinear_Output", weight.data->type);
    const WeightRules rules = weight_rules(mark.is_weight, mark.axis >= 0);
    const QuantizedValue q =
        store_weight(weight, rules.type, weight_parameters_[&weight], mark.axis, mark.block);
    use_instead(&weight, floats);
    Edge* integers = q.q;
    if (options_.pair_for_weights) {
      integers = edge(name + "_QuantizeLinear_Output", rules.type);
      emit("QuantizeLinear", name + "_QuantizeLinear", {&weight, q.scale, q.zero_point}, {integers},
           axis_attribute(mark.axis, mark.block), domain());
    }
    emit("DequantizeLinear", name + "_DequantizeLinear", {integers, q.scale, q.zero_point}, {floats},
         axis_attribute(mark.axis, mark.block), domain());
  }

  void write_pair(Edge& value, const QuantizedValue& q) {
    marks_[&value].is_done = true;
    const std::string name(value.name);
    const std::vector<Node*>& all = users(&value);
    values_[&value] = q;
    if (options_.dedicated_pairs && all.size() > 1 && !is_output(&value)) {
      int number = 0;
      for (Node* user : all) {
        const bool is_input =
            std::find(user->inputs.begin(), user->inputs.end(), &value) != user->inputs.end();
        if (is_input) write_dedicated(value, *user, q, fmt::format("_{}", ++number));
      }
      return;
    }
    Edge *from = &value, *to = nullptr;
    if (is_output(&value)) {
      // The name stays with what the caller sees.
      from = edge(name + "_QuantizeLinear_Input");
      from->facts = value.facts;
      if (value.producer != nullptr)
        std::replace(value.producer->outputs.begin(), value.producer->outputs.end(), &value, from);
      from->producer = value.producer;
      value.producer = nullptr;
      to = &value;
    } else {
      to = edge(name + "_DequantizeLinear_Output", value.facts.type.type);
      use_instead(&value, to);
    }
    write_pair(name, "", from, to, q);
  }
  void write_pair(const std::string& name, const std::string& suffix, Edge* from, Edge* to,
                  const QuantizedValue& q) {
    Edge* integers = edge(name + "_QuantizeLinear_Output" + suffix, options_.activation_type);
    emit("QuantizeLinear", name + "_QuantizeLinear" + suffix, {from, q.scale, q.zero_point}, {integers}, {},
         domain());
    emit("DequantizeLinear", name + "_DequantizeLinear" + suffix, {integers, q.scale, q.zero_point}, {to}, {},
         domain());
  }
  void write_dedicated(Edge& value, Node& user, const QuantizedValue& q, const std::string& suffix) {
    const std::string name(value.name);
    Edge* to = edge(name + "_DequantizeLinear_Output" + suffix, value.facts.type.type);
    std::replace(user.inputs.begin(), user.inputs.end(), &value, to);
    write_pair(name, suffix, &value, to, q);
  }

  void write_biases() {
    std::map<const Edge*, int> seen;
    for (const Bias& b : biases_) {
      const auto scale = input_scale(b);
      const auto weight = weight_parameters_.find(b.weight);
      if (!scale || weight == weight_parameters_.end() || is_marked(b.bias)) continue;
      if (marks_[b.weight].block > 0) continue;  // a sum of blocks has no one scale
      std::vector<float> scales;
      for (const LinearParameters& p : weight->second) scales.push_back(p.scale);
      if (scales.size() > 1 && b.bias->data->view().elements() != static_cast<int64_t>(scales.size()))
        continue;
      const int copies = seen[b.bias]++;
      const std::string name = std::string(b.bias->name) + (copies == 0 ? "" : std::to_string(copies));
      if (options_.weight_type == ElementType::kFloat8E4M3FN) continue;
      const QuantizedValue q = quantize_bias(*b.bias, name, *scale, scales, b.beta);
      Edge* floats = edge(name, b.bias->data->type);
      emit("DequantizeLinear", name + "_DequantizeLinear", {q.q, q.scale, q.zero_point}, {floats},
           axis_attribute(q.axis), domain());
      std::replace(b.node->inputs.begin(), b.node->inputs.end(), b.bias, floats);
      if (b.node->attribute("beta") == nullptr) continue;
      b.node->attributes =
          graph_.arena().copy(AttributeList(graph_.arena(), *b.node).set("beta", 1.0f).list());
    }
  }

  std::vector<Edge*> order_;
  std::unordered_map<const Edge*, Mark> marks_;
  std::vector<Bias> biases_;
  std::set<const Node*> removed_;
  std::unordered_map<const Edge*, std::vector<LinearParameters>> weight_parameters_;
};

}  // namespace

void quantize_qdq(QuantizeContext& context, const StaticOptions& options, Statistics statistics) {
  QdqRewriter(context, options, std::move(statistics)).rewrite();
  drop_unused_initializers(context.graph);
  sign_as_quantized(context.graph);
}

}  // namespace plimsoll
