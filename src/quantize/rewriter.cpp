#include "quantize/rewriter.h"

#include <algorithm>

#include "base/fail.h"
#include "graph/bodies.h"
#include "graph/op_def.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {
constexpr int64_t kSpillFrom = 64 << 10;  // smaller constants stay with the graph

void collect_names(const Graph& graph, bool bodies, std::set<std::string_view>& names) {
  for (const Node* node : graph.nodes) {
    names.insert(node->name);
    if (!bodies) continue;
    for (const Graph* body : bodies_of(*node)) collect_names(*body, bodies, names);
  }
}

}  // namespace

bool NodeFilter::wants(const Node& node) const {
  if (!only_nodes.empty() && only_nodes.count(node.name) == 0) return false;
  if (!op_types.empty() && op_types.count(node.op_type) == 0) return false;
  return excluded_nodes.count(node.name) == 0;
}

void NodeFilter::check(const Graph& graph, bool bodies) const {
  std::set<std::string_view> there;
  collect_names(graph, bodies, there);
  for (const auto* names : {&only_nodes, &excluded_nodes}) {
    for (const std::string& name : *names) {
      if (there.count(name) == 0)
        fail(ErrorCode::kInvalidArgument, "there is no node '{}' in the model's graph", name);
    }
  }
}

Node* Rewriter::emit(std::string_view op_type, const std::string& name, std::vector<Edge*> inputs,
                     std::vector<Edge*> outputs, std::span<const Attribute> attributes,
                     std::string_view domain) {
  return graph_.add_node(domain, op_type, name, inputs, outputs, attributes);
}

Edge* Rewriter::edge(const std::string& name, ElementType type) {
  Edge* made = graph_.add_edge(name);
  made->facts.type.type = type;
  return made;
}

Rewriter::Room Rewriter::room(const std::string& name, ElementType type, std::span<const int64_t> dims) {
  BumpArena& arena = graph_.arena();
  TensorData tensor;
  tensor.type = type;
  tensor.dims = arena.copy(dims);
  int64_t count = 1;
  for (int64_t dim : dims) count = checked_mul(count, dim);
  const int64_t bytes = element_bytes(type, count);
  std::span<std::byte> place;
  if (bytes >= kSpillFrom) {
    place = context_.spill.take(bytes);
  } else {
    place = {static_cast<std::byte*>(arena.allocate(static_cast<size_t>(bytes) + 1, 64)),
             static_cast<size_t>(bytes)};
    std::fill(place.begin(), place.end(), std::byte{0});
  }
  tensor.bytes = place;
  return {graph_.root().add_constant(name, tensor), place};
}

void Rewriter::settle(const Room& room) const {
  if (static_cast<int64_t>(room.bytes.size()) >= kSpillFrom) context_.spill.settle(room.bytes);
}

Edge* Rewriter::constant(const std::string& name, ElementType type, std::span<const int64_t> dims,
                         std::span<const std::byte> bytes) {
  const Room place = room(name, type, dims);
  std::copy(bytes.begin(), bytes.end(), place.bytes.begin());
  settle(place);
  return place.edge;
}

Edge* Rewriter::reals(const std::string& name, ElementType type, std::span<const int64_t> dims,
                      std::span<const float> values) {
  return visit_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> rounded;
    for (float value : values) rounded.push_back(T(value));
    return constant(name, type, dims, std::as_bytes(std::span<const T>(rounded)));
  });
}

Edge* Rewriter::whole_numbers(const std::string& name, ElementType type, std::span<const int64_t> dims,
                              std::span<const int32_t> values) {
  const Room place = room(name, type, dims);
  const int bits = element_bits(type);
  for (size_t i = 0; i < values.size(); ++i) {
    if (bits < 8) {
      set_packed_bits(place.bytes.data(), bits, static_cast<int64_t>(i), static_cast<unsigned>(values[i]));
    } else {
      const auto bytes = static_cast<size_t>(bits / 8);
      std::memcpy(place.bytes.data() + i * bytes, &values[i], bytes);  // the low bytes come first
    }
  }
  settle(place);
  return place.edge;
}

std::vector<LinearParameters> Rewriter::weight_parameters(const Edge& weight, const WeightRules& rules,
                                                          int64_t axis, int64_t block) {
  const ChannelShape shape(weight.data->dims, axis, block);
  std::vector<LinearParameters> result;
  const std::vector<RealRange> ranges = channel_ranges(context_.reader, *weight.data, shape, weight.name);
  if (rules.type == ElementType::kFloat8E4M3FN) {
    for (float deviation : channel_deviations(context_.reader, *weight.data, shape))
      result.push_back({deviation > 0 ? float8_scale(deviation) : 1.0f, 0});
    return result;
  }
  const IntegerRange integers = integer_range(rules.type, rules.reduced, rules.symmetric);
  for (const RealRange& range : ranges)
    result.push_back(
        linear_parameters(range, integers, rules.symmetric, weight.data->type, rules.least_range));
  return result;
}

const QuantizedValue& Rewriter::store_weight(Edge& weight, ElementType type,
                                             std::span<const LinearParameters> parameters, int64_t axis,
                                             int64_t block) {
  const std::string name(weight.name);
  std::vector<float> scales;
  std::vector<int32_t> zeros;
  for (const LinearParameters& p : parameters) {
    scales.push_back(p.scale);
    zeros.push_back(p.zero_point);
  }
  std::vector<int64_t> dims;
  if (block > 0) {
    dims = {weight.data->dims.begin(), weight.data->dims.end()};
    int64_t& size = dims[static_cast<size_t>(axis)];
    size = (size + block - 1) / block;
  } else if (axis >= 0) {
    dims.push_back(static_cast<int64_t>(parameters.size()));
  }
  QuantizedValue value;
  value.axis = axis;
  value.block = block;
  value.scale = reals(name + "_scale", weight.data->type, dims, scales);
  value.zero_point = whole_numbers(name + "_zero_point", type, dims, zeros);
  const Room place = room(name + "_quantized", type, weight.data->dims);
  quantize_channels(context_.reader, *weight.data, ChannelShape(weight.data->dims, axis, block), parameters,
                    type, place.bytes.data());
  settle(place);
  value.q = place.edge;
  return values_[&weight] = value;
}

const QuantizedValue& Rewriter::quantize_weight(Edge& weight, const WeightRules& rules, int64_t axis) {
  const auto known = values_.find(&weight);
  if (known != values_.end()) return known->second;
  return store_weight(weight, rules.type, weight_parameters(weight, rules, axis), axis);
}

bool Rewriter::is_weight(const Edge* edge) {
  return edge != nullptr && edge->data != nullptr && is_float_data(*edge->data);
}

bool Rewriter::is_float(const Edge* edge) {
  if (edge == nullptr || edge->facts.type.kind != ValueKind::kTensor) return false;
  const ElementType type = edge->facts.type.type;
  return type == ElementType::kFloat || type == ElementType::kFloat16;
}

bool Rewriter::is_float32(const Edge* edge) {
  return is_float(edge) && edge->facts.type.type == ElementType::kFloat;
}

void adopt_constants(Graph& graph) {
  size_t kept = 0;
  for (Node* node : graph.nodes) {
    const bool is_constant = node->op_type == "Constant" && node->domain.empty();
    const Attribute* value = is_constant ? node->attribute("value") : nullptr;
    const TensorData* tensor = value == nullptr ? nullptr : value->tensor;
    if (tensor == nullptr || !is_float_data(*tensor) || tensor->view().elements() < 2) {
      graph.nodes[kept++] = node;
      continue;
    }
    Edge* edge = node->outputs[0];
    edge->producer = nullptr;
    edge->set_data(graph.arena(), *tensor);
    graph.initializers.push_back(edge);
  }
  graph.nodes.resize_down(kept);
}

void drop_unused_initializers(Graph& graph) {
  const std::vector<int> uses = count_uses(graph);
  const auto filter = [&](ArenaVector<Edge*>& edges) {
    size_t kept = 0;
    for (Edge* edge : edges) {
      if (edge->data == nullptr || uses[edge->id] > 0) edges[kept++] = edge;
    }
    edges.resize_down(kept);
  };
  filter(graph.initializers);
  filter(graph.inputs);
}

void sign_as_quantized(Graph& graph) {
  graph.producer_name = "onnx.quantize";
  graph.producer_version = "0.1.0";
}

void refuse_quantized(const Graph& graph) {
  constexpr std::string_view kSigns[] = {"QuantizeLinear",
                                         "DequantizeLinear",
                                         "DynamicQuantizeLinear",
                                         "MatMulInteger",
                                         "ConvInteger",
                                         "QLinearConv",
                                         "QLinearMatMul",
                                         "MatMulNBits",
                                         "DynamicQuantizeLSTM",
                                         "DynamicQuantizeMatMul",
                                         "QGemm"};
  for (const Node* node : graph.nodes) {
    if (std::find(std::begin(kSigns), std::end(kSigns), node->op_type) != std::end(kSigns))
      fail(ErrorCode::kInvalidArgument,
           "{}: expected a model of floats to quantize, found one that is quantized", node->label());
  }
}

}  // namespace plimsoll
