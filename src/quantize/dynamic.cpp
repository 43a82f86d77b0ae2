#include <algorithm>

#include "graph/bodies.h"
#include "graph/op_def.h"
#include "quantize/quantize_model.h"
#include "tensor/dim.h"

namespace plimsoll {
namespace {

class DynamicRewriter : public Rewriter {
 public:
  DynamicRewriter(QuantizeContext& context, const DynamicOptions& options)
      : Rewriter(context), options_(options) {}

  void rewrite() {
    each_node([&](Node& node) {
      if (!quantize(node)) keep_as_float(node);
    });
    for (Edge* output : graph_.outputs) dequantize(output);
  }

 private:
  bool quantize(Node& node) {
    const bool is_ours = node.domain.empty() || node.domain == kMicrosoftDomain;
    if (!is_ours || !options_.filter.wants(node)) return false;
    if (node.op_type == "MatMul") return quantize_matmul(node);
    if (node.op_type == "Conv") return quantize_conv(node);
    if (node.op_type == "Gather") return quantize_gather(node);
    if (node.op_type == "Transpose") return quantize_transpose(node);
    if (node.op_type == "LSTM") return quantize_lstm(node);
    if (node.op_type == "EmbedLayerNormalization") return quantize_embeddings(node);
    return false;
  }

  // What a node that stays takes is floats again.
  void keep_as_float(Node& node) {
    for (Edge*& input : node.inputs) {
      if (input != nullptr && input->data == nullptr) dequantize(input);
    }
    for (Edge* used : captured_edges(node)) dequantize(used);
    if (options_.bodies) rewrite_bodies(node);
    keep(node);
  }

  // What is quantized out here is known in there. Of what is made in there, weights are constants of the
  // whole model: they are known out here, and in the next body.
  void rewrite_bodies(Node& node) {
    int number = 0;
    for (Graph* body : bodies_of(node)) {
      QuantizeContext inside{*body, context_.spill, context_.reader, context_.outcome, {}};
      DynamicRewriter rewriter(inside, options_);
      rewriter.values_ = values_;
      rewriter.scope_ = fmt::format("{}{}/{}/", scope_, node.name, number++);
      rewriter.rewrite();
      for (const auto& [edge, value] : rewriter.values_) {
        if (edge->data != nullptr) values_.emplace(edge, value);
      }
    }
  }

  // Makes the floats of a value that so far has only integers.
  void dequantize(Edge* value) {
    const auto known = values_.find(value);
    if (known == values_.end() || value->data != nullptr || value->producer != nullptr || is_input(value))
      return;
    const QuantizedValue& q = known->second;
    emit("DequantizeLinear", std::string(value->name) + "_DequantizeLinear", {q.q, q.scale, q.zero_point},
         {value});
  }
  bool is_input(const Edge* value) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), value) != graph_.inputs.end();
  }

  const QuantizedValue& quantize_activation(Edge& value) {
    const auto known = values_.find(&value);
    if (known != values_.end()) return known->second;
    // What is made in a body of a value from outside must not have a name that is taken out there.
    const std::string name = (value.graph == &graph_ ? std::string() : scope_) + std::string(value.name);
    QuantizedValue made;
    made.q = edge(name + "_quantized", ElementType::kUint8);
    made.scale = edge(name + "_scale", ElementType::kFloat);
    made.zero_point = edge(name + "_zero_point", ElementType::kUint8);
    emit("DynamicQuantizeLinear", name + "_QuantizeLinear", {&value}, {made.q, made.scale, made.zero_point});
    return values_[&value] = made;
  }

  WeightRules rules(bool reduced) const {
    const bool is_signed = options_.weight_type == ElementType::kInt8;
    return {options_.weight_type, options_.weight_symmetric.value_or(is_signed),
            reduced && options_.reduce_range, options_.least_range};
  }

  // Of constants that are no weights of a product: tables that Gather reads.
  WeightRules as_activation() const {
    return {ElementType::kUint8, options_.activation_symmetric, false, options_.least_range};
  }

  // The integers in floats of the output's type, times both scales.
  void scale(const Node& node, Edge* integers, const QuantizedValue& a, const QuantizedValue& b,
             Edge* scaled) {
    const std::string name = std::string(node.name) + "_quant", y(integers->name);
    const ElementType type = node.outputs[0]->facts.type.type;
    Edge* cast = edge(y + "_cast_output", type);
    emit("Cast", y + "_cast", {integers}, {cast}, attributes().set("to", static_cast<int64_t>(type)).list());
    Edge* scales = edge(name + "_scales_mul:0", ElementType::kFloat);
    emit("Mul", name + "_scales_mul", {a.scale, b.scale}, {scales});
    emit("Mul", name + "_output_scale_mul", {cast, scales}, {scaled});
  }

  bool quantize_matmul(Node& node) {
    Edge *a = node.inputs[0], *b = node.inputs[1];
    if (!is_float32(a) || !is_float32(b)) return left(node, "no inputs of float");
    if (a->data != nullptr) return left(node, "the first input is a constant");
    if (b->data == nullptr && options_.constant_weights_only)
      return left(node, "the second input is no constant");
    const QuantizedValue qa = quantize_activation(*a);
    QuantizedValue qb;
    if (b->data != nullptr) {
      // Vectors have no columns, and stacks of matrices several of each.
      qb = quantize_weight(*b, rules(true), options_.per_channel && b->data->dims.size() == 2 ? 1 : -1);
    } else {
      qb = quantize_activation(*b);
    }
    Edge* y = edge(std::string(node.outputs[0]->name) + "_output_quantized", ElementType::kInt32);
    emit("MatMulInteger", std::string(node.name) + "_quant", {qa.q, qb.q, qa.zero_point, qb.zero_point}, {y});
    scale(node, y, qa, qb, node.outputs[0]);
    note(node, "MatMulInteger");
    return true;
  }

  bool quantize_conv(Node& node) {
    Edge *x = node.inputs[0], *w = node.inputs[1];
    if (!is_float32(x) || x->data != nullptr) return left(node, "no input of float");
    if (!is_weight(w)) return left(node, "the weights are no constant");
    const QuantizedValue qx = quantize_activation(*x);
    const QuantizedValue qw = quantize_weight(*w, rules(true), -1);
    const std::string y(node.outputs[0]->name);
    Edge* integers = edge(y + "_output_quantized", ElementType::kInt32);
    emit("ConvInteger", std::string(node.name) + "_quant", {qx.q, qw.q, qx.zero_point, qw.zero_point},
         {integers}, node.attributes);
    Edge* bias = node.input(2);
    Edge* scaled = bias == nullptr ? node.outputs[0] : edge(y + "quant_scaled_output", x->facts.type.type);
    scale(node, integers, qx, qw, scaled);
    if (bias != nullptr) {
      std::vector<int64_t> shape(w->data->dims.size(), 1);
      shape[1] = -1;
      const int64_t rank[] = {static_cast<int64_t>(shape.size())};
      Edge* shaped = edge(y + "_bias_reshape_output", x->facts.type.type);
      emit("Reshape", y + "_bias_reshape",
           {bias, constant(y + "_bias_reshape_shape", ElementType::kInt64, rank,
                           std::as_bytes(std::span<const int64_t>(shape)))},
           {shaped});
      emit("Add", y + "_bias_add", {scaled, shaped}, {node.outputs[0]});
    }
    note(node, "ConvInteger");
    return true;
  }

  // The output carries integers on; floats are made of them where somebody needs floats.
  void pass_on(Node& node, const QuantizedValue& q) {
    Edge* y = node.outputs[0];
    Edge* made = edge(std::string(y->name) + "_quantized", ElementType::kUint8);
    node.inputs[0] = q.q;
    node.outputs[0] = made;
    made->producer = &node;
    y->producer = nullptr;
    values_[y] = {made, q.scale, q.zero_point, -1};
    keep(node);
  }

  bool quantize_gather(Node& node) {
    if (!is_weight(node.inputs[0])) return false;
    const QuantizedValue table = quantize_weight(*node.inputs[0], as_activation(), -1);
    if (table.axis >= 0) return left(node, "its table is a weight with scales per channel");
    pass_on(node, table);
    note(node, "Gather of uint8");
    return true;
  }

  bool quantize_transpose(Node& node) {
    Edge* x = node.inputs[0];
    if (!options_.force_all) {
      const auto known = values_.find(x);
      if (known == values_.end() || known->second.axis >= 0) return false;
      const QuantizedValue q = known->second;
      pass_on(node, q);
    } else {
      if (!is_weight(x)) return false;
      pass_on(node, quantize_weight(*x, as_activation(), -1));
    }
    note(node, "Transpose of uint8");
    return true;
  }

  // Weights [directions, 4 * hidden, K] become [directions, K, 4 * hidden], with a scale per direction or per
  // row.
  const QuantizedValue& quantize_lstm_weight(Edge& weight) {
    const auto known = values_.find(&weight);
    if (known != values_.end()) return known->second;
    const WeightRules rules = {ElementType::kInt8, options_.weight_symmetric.value_or(true),
                               options_.reduce_range, options_.least_range};
    const int64_t directions = weight.data->dims[0], rows = weight.data->dims[1],
                  columns = weight.data->dims[2];
    TensorData flat = *weight.data;
    const int64_t flat_dims[] = {directions * rows, columns};
    if (options_.per_channel) flat.dims = flat_dims;
    Edge seen = weight;
    seen.data = &flat;
    const std::vector<LinearParameters> parameters = weight_parameters(seen, rules, 0);
    std::vector<float> scales;
    std::vector<int32_t> zeros;
    for (const LinearParameters& p : parameters) {
      scales.push_back(p.scale);
      zeros.push_back(p.zero_point);
    }
    std::vector<int64_t> dims = {directions};
    if (options_.per_channel) dims.push_back(rows);
    const std::string name(weight.name);
    QuantizedValue value;
    value.scale = reals(name + "_scale", weight.data->type, dims, scales);
    value.zero_point = whole_numbers(name + "_zero_point", ElementType::kInt8, dims, zeros);
    const int64_t turned_dims[] = {directions, columns, rows};
    const Room place = room(name + "_quantized", ElementType::kInt8, turned_dims);
    std::vector<std::byte> row(static_cast<size_t>(columns));
    for (int64_t d = 0; d < (context_.reader.plans() ? 0 : directions); ++d) {
      for (int64_t r = 0; r < rows; ++r) {
        const size_t channel = static_cast<size_t>(options_.per_channel ? d * rows + r : d);
        const int64_t first = (d * rows + r) * columns;
        for (int64_t at = 0; at < columns; at += WeightReader::kPiece) {
          const int64_t count = std::min(WeightReader::kPiece, columns - at);
          quantize_linear(context_.reader.read(*weight.data, first + at, count), parameters[channel],
                          ElementType::kInt8, row.data(), at);
        }
        for (int64_t c = 0; c < columns; ++c)
          place.bytes[static_cast<size_t>((d * columns + c) * rows + r)] = row[static_cast<size_t>(c)];
      }
    }
    context_.reader.drop(*weight.data, 0, directions * rows * columns);
    settle(place);
    value.q = place.edge;
    return values_[&weight] = value;
  }

  bool quantize_lstm(Node& node) {
    for (size_t i : {1, 2}) {
      if (!is_weight(node.inputs[i]) || node.inputs[i]->data->dims.size() != 3)
        return left(node, "the weights are no constants");
    }
    if (node.attribute("layout") != nullptr && node.attribute("layout")->i != 0)
      return left(node, "layout 1 has no form in integers");
    dequantize(node.inputs[0]);
    const QuantizedValue w = quantize_lstm_weight(*node.inputs[1]);
    const QuantizedValue r = quantize_lstm_weight(*node.inputs[2]);
    std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
    inputs.resize(8);
    inputs[1] = w.q;
    inputs[2] = r.q;
    inputs.insert(inputs.end(), {w.scale, w.zero_point, r.scale, r.zero_point});
    emit("DynamicQuantizeLSTM", std::string(node.name) + "_quant", inputs,
         {node.outputs.begin(), node.outputs.end()},
         AttributeList(graph_.arena(), node).erase("layout").list(), kMicrosoftDomain);
    note(node, "DynamicQuantizeLSTM");
    return true;
  }

  bool quantize_embeddings(Node& node) {
    if (node.domain != kMicrosoftDomain || node.outputs.size() > 2) return false;
    for (size_t i : {2, 3, 5, 6}) {
      if (!is_weight(node.input(i))) return left(node, "the embeddings are no constants");
    }
    if (node.input(4) != nullptr && !is_weight(node.input(4)))
      return left(node, "the embeddings are no constants");
    std::vector<Edge*> inputs = {node.inputs[0], node.inputs[1]}, scales, zeros;
    for (size_t i = 2; i < 7; ++i) {
      const QuantizedValue q =
          node.input(i) == nullptr ? QuantizedValue{} : quantize_weight(*node.inputs[i], as_activation(), -1);
      inputs.push_back(q.q);
      scales.push_back(q.scale);
      zeros.push_back(q.zero_point);
    }
    inputs.push_back(node.input(7));
    inputs.insert(inputs.end(), scales.begin(), scales.end());
    inputs.insert(inputs.end(), zeros.begin(), zeros.end());
    emit("QEmbedLayerNormalization", std::string(node.name) + "_quant", inputs,
         {node.outputs.begin(), node.outputs.end()}, node.attributes, kMicrosoftDomain);
    note(node, "QEmbedLayerNormalization");
    return true;
  }

  bool left(const Node& node, std::string_view why) {
    note_left(node, why);
    return false;
  }

  const DynamicOptions& options_;
  std::string scope_;  // of a body: where it is
};

}  // namespace

void quantize_dynamic(QuantizeContext& context, const DynamicOptions& options) {
  if (options.weight_type != ElementType::kInt8 && options.weight_type != ElementType::kUint8)
    fail(ErrorCode::kInvalidArgument,
         "dynamic quantization: expected weights of type int8 or uint8, found {}",
         element_type_name(options.weight_type));
  if (context.graph.opset("") < 11)
    fail(ErrorCode::kInvalidArgument,
         "dynamic quantization: expected a model of opset 11 or newer, which has DynamicQuantizeLinear, "
         "found {}",
         context.graph.opset(""));
  refuse_quantized(context.graph);
  options.filter.check(context.graph, options.bodies);
  DynamicOptions with_parts = options;
  const auto each_graph = [&](auto&& f) {
    if (!options.bodies) return f(context.graph);
    context.graph.for_each_graph(f);
  };
  each_graph([&](Graph& graph) {
    if (&graph != &context.graph) adopt_constants(graph);
    QuantizeContext here{graph, context.spill, context.reader, context.outcome, {}};
    gemm_to_matmul(here, with_parts.filter);
  });
  DynamicRewriter(context, with_parts).rewrite();
  each_graph(drop_unused_initializers);
  sign_as_quantized(context.graph);
}

}  // namespace plimsoll
