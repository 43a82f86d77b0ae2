#include <algorithm>
#include <cmath>
#include <map>

#include "graph/infer.h"
#include "graph/op_def.h"
#include "memory/transient_memory.h"
#include "quantize/half_opsets.h"
#include "quantize/quantize_model.h"

namespace plimsoll {
namespace {

// What loses too much in 16 bits, or has no form in them elsewhere.
constexpr std::string_view kKeptWide[] = {"CumSum",
                                          "DynamicQuantizeLinear",
                                          "Max",
                                          "Min",
                                          "NonMaxSuppression",
                                          "RandomUniformLike",
                                          "Range",
                                          "RoiAlign",
                                          "TopK",
                                          "Upsample"};

struct WideInput {
  std::string_view op_type;
  size_t input;
};
// Inputs that are of 32 bits whatever the others are.
constexpr WideInput kWideInputs[] = {{"Resize", 1}, {"Resize", 2}};

template <typename T>
T narrowed(float value) {
  if constexpr (std::is_same_v<T, Float16>) {
    constexpr float kMost = 65504.0f, kLeast = 0x1p-24f;
    if (std::isfinite(value) && value != 0)
      value = std::copysign(std::clamp(std::fabs(value), kLeast, kMost), value);
  }
  return T(value);
}

class HalfRewriter : public Rewriter {
 public:
  HalfRewriter(QuantizeContext& context, const HalfOptions& options)
      : Rewriter(context), options_(options), memory_(context.graph.arena().budget()) {}

  void rewrite() {
    refuse_lists();
    std::vector<Graph*> graphs;
    graph_.for_each_graph([&](Graph& graph) { graphs.push_back(&graph); });
    for (Graph* graph : graphs) {
      for (const Node* node : graph->nodes) {
        node_names_.emplace(node->name);
        if (stays_wide(*node)) wide_.insert(node);
      }
    }
    // Body by body: what encloses a body has been narrowed before it.
    for (Graph* graph : graphs) rewrite(*graph);
    for (Graph* graph : graphs) {
      for (Edge* edge : graph->outputs) narrow_type(*edge);
    }
    if (options_.keep_io_types) widen_outputs();
  }

 private:
  // No Cast takes a list.
  void refuse_lists() const {
    if (options_.keep_io_types) {
      for (const auto& edges : {graph_.inputs, graph_.outputs}) {
        for (const Edge* edge : edges)
          if (is_wide_list(edge))
            refuse(*edge, "inputs and outputs keep their types only if they are tensors");
      }
    }
    if (options_.type != ElementType::kBFloat16) return;
    const auto check = [](std::span<Edge* const> edges) {
      for (const Edge* edge : edges)
        if (is_wide_list(edge)) refuse(*edge, "ONNX has no lists of bfloat16 (--mode fp16 takes them along)");
    };
    graph_.for_each_graph([&](Graph& graph) {
      check(graph.inputs);
      for (const Node* node : graph.nodes) check(node->outputs);
    });
  }
  [[noreturn]] static void refuse(const Edge& edge, std::string_view why) {
    fail(ErrorCode::kInvalidArgument, "conversion to 16 bits: {}, and '{}' is {}", why, edge.name,
         value_kind_name(edge.facts.type.kind));
  }
  static bool is_wide_type(const Edge* edge) {
    return edge != nullptr && edge->facts.type.kind == ValueKind::kTensor &&
           edge->facts.type.type == ElementType::kFloat;
  }
  bool is_real_edge(const Edge* edge) const {
    return is_wide_type(edge) || (edge != nullptr && edge->facts.type.type == options_.type);
  }
  static bool is_wide_list(const TypeInfo& type) {
    if (type.kind != ValueKind::kSequence && type.kind != ValueKind::kOptional) return false;
    if (type.element == nullptr) return false;
    return type.element->kind == ValueKind::kTensor ? type.element->type == ElementType::kFloat
                                                    : is_wide_list(*type.element);
  }
  static bool is_wide_list(const Edge* edge) { return edge != nullptr && is_wide_list(edge->facts.type); }
  static bool has_body(const Node& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(),
                       [](const Attribute& a) { return a.graph != nullptr || !a.graphs.empty(); });
  }

  bool stays_wide(const Node& node) {
    if (has_body(node)) return false;
    // No Cast takes a sequence: whoever makes, changes or reads one of floats goes along.
    const auto is_list = [](const Edge* edge) { return is_wide_list(edge); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), is_list) ||
        std::any_of(node.outputs.begin(), node.outputs.end(), is_list))
      return false;
    if (node.domain.empty() && node.opset < first_opset_with(node.op_type, options_.type)) return true;
    if (options_.filter.excluded_nodes.count(node.name) > 0) return true;
    if (!options_.filter.wants(node)) return true;
    if (std::find(std::begin(kKeptWide), std::end(kKeptWide), node.op_type) != std::end(kKeptWide))
      return true;
    return combines_updates(node) || !takes_halves(node);
  }
  // ONNX Runtime adds and multiplies into places only what has 32 bits or more.
  static bool combines_updates(const Node& node) {
    const Attribute* reduction = node.attribute("reduction");
    return (node.op_type == "ScatterElements" || node.op_type == "ScatterND") && reduction != nullptr &&
           reduction->s != "none";
  }

  // Whether the operator itself agrees: what was floats of 32 bits comes out in 16.
  bool takes_halves(const Node& node) {
    std::vector<Facts> inputs = facts_of_edges(node.inputs);
    bool changes = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_wide_type(node.inputs[i]) || is_wide_input(node, i)) continue;
      inputs[i].type.type = options_.type;
      inputs[i].constant = nullptr;  // the bytes at hand are of the other type
      changes = true;
    }
    std::vector<Facts> outputs;
    try {
      if (changes) outputs = infer_node(node, inputs, memory_.arena(), graph_.dims());
    } catch (const Error&) {
      return false;
    }
    if (names_wide_type(node)) return true;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_wide_type(node.outputs[i])) continue;
      if (i >= outputs.size() || outputs[i].type.type == ElementType::kFloat) return false;
    }
    return true;
  }
  // Whether an attribute says what comes out, which can say something else.
  static bool names_wide_type(const Node& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const Attribute& a) {
      if (names_type(node, a)) return a.i == static_cast<int64_t>(ElementType::kFloat);
      if (a.tensor != nullptr) return a.tensor->type == ElementType::kFloat;
      return node.op_type == "Constant" &&
             (a.type == AttributeType::kFloat || a.type == AttributeType::kFloats);
    });
  }
  static bool names_type(const Node& node, const Attribute& a) {
    return (a.name == "to" && node.op_type == "Cast") || a.name == "dtype" || a.name == "output_datatype";
  }
  static bool is_wide_input(const Node& node, size_t input) {
    return std::any_of(std::begin(kWideInputs), std::end(kWideInputs),
                       [&](const WideInput& w) { return w.op_type == node.op_type && w.input == input; });
  }

  void rewrite(Graph& graph) {
    const std::vector<Node*> old(graph.nodes.begin(), graph.nodes.end());
    graph.nodes.clear();
    for (size_t i = 0; i < graph.inputs.size(); ++i) narrow_input(graph, i);
    for (Node* node : old) {
      if (wide_.count(node) > 0) {
        keep_wide(graph, *node);
      } else {
        narrow(graph, *node);
      }
    }
  }

  void narrow_input(Graph& graph, size_t i) {
    Edge* input = graph.inputs[i];
    if (is_wide_list(input)) return narrow_type(*input);
    if (!is_wide_type(input) || input->data != nullptr) return;
    if (!options_.keep_io_types || &graph != &graph_) return narrow_type(*input);
    Edge* half = graph.add_edge(fmt::format("graph_input_cast_{}", i));
    half->facts = input->facts;
    narrow_type(*half);
    cast(graph, input, half, options_.type);
    replaced_[input] = half;
  }

  void narrow_type(Edge& edge) {
    if (is_wide_type(&edge) && edge.data == nullptr) narrowed_.insert(&edge);
    if ((is_wide_type(&edge) && edge.data == nullptr) || is_wide_list(&edge))
      edge.facts.type = narrowed_type(edge.facts.type);
  }

  TypeInfo narrowed_type(const TypeInfo& type) const {
    TypeInfo half = type;
    if (type.kind == ValueKind::kTensor && type.type == ElementType::kFloat) half.type = options_.type;
    if (is_wide_list(type)) half.element = graph_.arena().make<TypeInfo>(narrowed_type(*type.element));
    return half;
  }

  void cast(Graph& graph, Edge* from, Edge* to, ElementType type) {
    constexpr int kFirstByNumber = 6;  // before this opset types are told by name
    Edge *const inputs[] = {from}, *const outputs[] = {to};
    AttributeList list = attributes();
    if (const int opset = graph.opset(""); opset > 0 && opset < kFirstByNumber) {
      list.set("to", std::string_view(type == ElementType::kFloat ? "FLOAT" : "FLOAT16"));
    } else {
      list.set("to", static_cast<int64_t>(type));
    }
    graph.add_node("", "Cast", fresh_name(fmt::format("{}_cast", to->name)), inputs, outputs, list.list());
  }

  // That no other node has: ONNX Runtime refuses a model with two of one name.
  std::string fresh_name(const std::string& wanted) {
    std::string name = wanted;
    for (int number = 1; !node_names_.insert(name).second; ++number)
      name = fmt::format("{}_{}", wanted, number);
    return name;
  }

  // The half that stands for a value. A constant gets a copy, so that what stays wide keeps its digits.
  Edge* half_of(Edge* edge) {
    if (edge == nullptr) return nullptr;
    const auto known = replaced_.find(edge);
    if (known != replaced_.end()) return known->second;
    if (edge->data == nullptr || edge->data->type != ElementType::kFloat) return edge;
    return replaced_[edge] = narrowed_constant(std::string(edge->name), *edge->data);
  }

  Edge* narrowed_constant(const std::string& name, const TensorData& data) {
    const Room place = room(name, options_.type, data.dims);
    narrow_elements(data, place.bytes.data());
    settle(place);
    return place.edge;
  }

  void narrow_elements(const TensorData& data, std::byte* out) {
    context_.reader.each(data, [&](std::span<const float> x, int64_t first) {
      visit_float(options_.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T* to = reinterpret_cast<T*>(out) + first;
        for (size_t i = 0; i < x.size(); ++i) to[i] = narrowed<T>(x[i]);
      });
    });
  }

  void narrow(Graph& graph, Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_wide_input(node, i)) {
        node.inputs[i] = wide_of(graph, node.inputs[i]);
      } else {
        node.inputs[i] = half_of(node.inputs[i]);
      }
    }
    node.attributes = narrowed_attributes(node);
    for (Edge* output : node.outputs) {
      if (output != nullptr) narrow_type(*output);
    }
    graph.nodes.push_back(&node);
    const auto is_half = [&](const Edge* edge) {
      return edge != nullptr && edge->facts.type.type == options_.type;
    };
    if (std::any_of(node.outputs.begin(), node.outputs.end(), is_half))
      note(node, element_type_name(options_.type));
  }

  // Types that attributes name, and tensors in them.
  std::span<const Attribute> narrowed_attributes(const Node& node) {
    std::vector<Attribute> list(node.attributes.begin(), node.attributes.end());
    const bool makes_float = !node.outputs.empty() && is_wide_type(node.outputs[0]);
    if (node.op_type == "SequenceEmpty" && node.attribute("dtype") == nullptr)
      list.push_back(attributes().set("dtype", static_cast<int64_t>(ElementType::kFloat)).list()[0]);
    for (Attribute& a : list) {
      if (names_type(node, a) && a.i == static_cast<int64_t>(ElementType::kFloat))
        a.i = static_cast<int64_t>(options_.type);
      if (a.type_info != nullptr) a.type_info = graph_.arena().make<TypeInfo>(narrowed_type(*a.type_info));
      if (a.tensor != nullptr && a.tensor->type == ElementType::kFloat && makes_float) {
        TensorData half = *a.tensor;
        half.type = options_.type;
        const size_t count = a.tensor->bytes.size() / 4;
        std::byte* out = static_cast<std::byte*>(graph_.arena().allocate(count * 2 + 1, 64));
        narrow_elements(*a.tensor, out);
        half.bytes = {out, count * 2};
        half.in_file = false;
        a.tensor = graph_.arena().make<TensorData>(half);
      }
    }
    // A Constant of numbers that are no tensor.
    if (node.op_type == "Constant" && makes_float && list.size() == 1 && list[0].tensor == nullptr)
      list = {tensor_attribute(list[0])};
    return graph_.arena().copy(list);
  }

  Attribute tensor_attribute(const Attribute& numbers) {
    const bool is_list = numbers.type == AttributeType::kFloats;
    const std::span<const float> values = is_list ? numbers.floats : std::span<const float>(&numbers.f, 1);
    std::span<std::byte> out(static_cast<std::byte*>(graph_.arena().allocate(values.size() * 2 + 1, 64)),
                             values.size() * 2);
    visit_float(options_.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t i = 0; i < values.size(); ++i) reinterpret_cast<T*>(out.data())[i] = narrowed<T>(values[i]);
    });
    const std::vector<int64_t> dims(is_list ? 1 : 0, static_cast<int64_t>(values.size()));
    Attribute made;
    made.name = "value";
    made.type = AttributeType::kTensor;
    made.tensor = graph_.arena().make<TensorData>(
        TensorData{options_.type, graph_.arena().copy(dims), out, false, nullptr});
    return made;
  }

  // The value in 32 bits, in this graph: of what became a half, a Cast.
  Edge* wide_of(Graph& graph, Edge* edge) {
    if (narrowed_.count(edge) == 0) return edge;
    Edge*& wide = widened_[{&graph, edge}];
    if (wide != nullptr) return wide;
    wide = graph.add_edge(std::string(edge->name) + "_wide");
    wide->facts = edge->facts;
    wide->facts.type.type = ElementType::kFloat;
    cast(graph, edge, wide, ElementType::kFloat);
    return wide;
  }

  void keep_wide(Graph& graph, Node& node) {
    bool touched = false;
    for (Edge*& input : node.inputs) {
      touched |= is_real_edge(input);
      input = wide_of(graph, input);
    }
    graph.nodes.push_back(&node);
    for (Edge*& output : node.outputs) {
      if (!is_wide_type(output)) continue;
      touched = true;
      Edge* wide = graph.add_edge(std::string(output->name) + "_wide");
      wide->facts = output->facts;
      Edge* half = output;
      output = wide;
      wide->producer = &node;
      narrow_type(*half);
      cast(graph, wide, half, options_.type);
    }
    if (touched) note_left(node, "stays in 32 bits");
  }

  void widen_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      Edge* output = graph_.outputs[i];
      if (output->facts.type.kind != ValueKind::kTensor || output->facts.type.type != options_.type ||
          output->producer == nullptr || !was_float_[i])
        continue;
      Edge* half = graph_.add_edge(fmt::format("graph_output_cast_{}", i));
      half->facts = output->facts;
      Node* producer = output->producer;
      for (Edge*& made : producer->outputs) {
        if (made == output) made = half;
      }
      half->producer = producer;
      // The name stays with what the caller sees; whoever reads it inside reads the half.
      graph_.replace_uses(output, half);
      std::replace(graph_.outputs.begin(), graph_.outputs.end(), half, output);
      output->producer = nullptr;
      output->facts.type.type = ElementType::kFloat;
      cast(graph_, half, output, ElementType::kFloat);
    }
  }

 public:
  void remember_outputs() {
    for (const Edge* output : graph_.outputs) was_float_.push_back(is_wide_type(output));
  }

 private:
  const HalfOptions& options_;
  TransientMemory memory_;
  std::set<const Node*> wide_;
  std::unordered_map<const Edge*, Edge*> replaced_;
  std::set<const Edge*> narrowed_;
  std::map<std::pair<const Graph*, const Edge*>, Edge*> widened_;  // in each graph
  std::set<std::string, std::less<>> node_names_;
  std::vector<bool> was_float_;
};

}  // namespace

void convert_to_half(QuantizeContext& context, const HalfOptions& options) {
  if (options.type == ElementType::kBFloat16 && context.graph.opset("") < 13)
    fail(ErrorCode::kInvalidArgument,
         "conversion to bfloat16: expected a model of opset 13 or newer, found {}", context.graph.opset(""));
  options.filter.check(context.graph);
  HalfRewriter rewriter(context, options);
  rewriter.remember_outputs();
  rewriter.rewrite();
  drop_unused_initializers(context.graph);
}

}  // namespace plimsoll
