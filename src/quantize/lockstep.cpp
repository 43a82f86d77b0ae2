#include "quantize/lockstep.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/op_def.h"

namespace plimsoll {
namespace {

constexpr int kOpset = 21;  // of the nodes that are added: integers of all widths have DequantizeLinear there

// What the second model gets for one of its inputs.
Edge* counterpart(Graph& first, const Edge& wanted) {
  const auto is_it = [&](const Edge* edge) { return edge->name == wanted.name; };
  const auto found = std::find_if(first.inputs.begin(), first.inputs.end(), is_it);
  if (found == first.inputs.end() || (*found)->data != nullptr)
    fail(ErrorCode::kInvalidArgument,
         "comparison: the second model has an input '{}': expected one of that name in the first, found none",
         wanted.name);
  const ElementType from = (*found)->facts.type.type, to = wanted.facts.type.type;
  if (from == to || to == ElementType::kUndefined) return *found;
  Edge* cast = first.add_edge(fmt::format("{}/{}/cast", kSecondModel, wanted.name));
  Edge *const inputs[] = {*found}, *const outputs[] = {cast};
  Node* node =
      first.add_node("", "Cast", fmt::format("{}/cast {}", kSecondModel, wanted.name), inputs, outputs,
                     AttributeList(first.arena()).set("to", static_cast<int64_t>(to)).list());
  node->opset = kOpset;
  return cast;
}

class Lockstep {
 public:
  explicit Lockstep(Graph& graph) : graph_(graph), nodes_(graph.nodes.begin(), graph.nodes.end()) {
    for (size_t i = 0; i < nodes_.size(); ++i) place_[nodes_[i]] = i;
    const std::string prefix = fmt::format("{}/", kSecondModel);
    const auto look = [&](Edge* edge) {
      if (edge == nullptr) return;
      if (edge->name.substr(0, prefix.size()) == prefix) {
        second_.emplace(edge->name.substr(prefix.size()), edge);
      } else if (edge->producer != nullptr) {
        first_.push_back(edge);
      }
    };
    for (Edge* edge : graph.initializers) look(edge);
    for (Node* node : nodes_) {
      for (Edge* output : node->outputs) look(output);
      for (const Edge* input : node->inputs) users_[input].push_back(node);
    }
    outputs_.insert(graph.outputs.begin(), graph.outputs.end());
  }

  std::vector<ComparedValue> observe(const std::vector<std::string>& second_outputs,
                                     const LockstepOptions& options) {
    std::unordered_map<const Edge*, Edge*> by_place;
    const bool same_count = second_outputs.size() == graph_.outputs.size();
    for (size_t i = 0; same_count && i < second_outputs.size(); ++i)
      by_place[graph_.outputs[i]] = find(second_outputs[i]);
    graph_.nodes.clear();
    std::vector<Edge*> all;
    std::vector<ComparedValue> compared;
    for (Edge* value : first_) {
      const bool is_output = outputs_.count(value) > 0;
      if ((options.outputs_only && !is_output) || !is_number(value)) continue;
      Edge* other = stands_for_another(*value) ? nullptr : find_counterpart(*value);
      if (other == nullptr && is_output) other = by_place[value];
      if (other == nullptr || !is_number(other)) continue;
      emit_what_makes(value);
      emit_what_makes(other);
      const std::string shown(other->name.substr(kSecondModel.size() + 1));
      all.push_back(observe_pair(value, dequantized(*value, other), all.size()));
      const Node& maker = *(is_removed(*value->producer) ? value->producer->inputs[0] : value)->producer;
      compared.push_back(
          {std::string(value->name), shown, std::string(maker.name), std::string(maker.op_type), is_output});
      if (options.each_by_itself) hand_over(value, other);
    }
    if (all.empty())
      fail(ErrorCode::kInvalidArgument,
           "comparison: expected values of floats by the same name in both models, found none");
    Edge* joined = graph_.add_edge("differences");
    Edge* const outputs[] = {joined};
    graph_
        .add_node("", "Concat", "join_differences", all, outputs,
                  AttributeList(graph_.arena()).set("axis", int64_t{0}).list())
        ->opset = kOpset;
    graph_.outputs.clear();
    graph_.outputs.push_back(joined);
    return compared;
  }

 private:
  static bool is_number(const Edge* edge) {
    if (edge == nullptr || edge->facts.type.kind != ValueKind::kTensor) return false;
    const TypeSet set = kNumericTypes;
    return set.contains(edge->facts.type.type);
  }
  Edge* find(std::string_view name) const {
    const auto found = second_.find(name);
    return found == second_.end() ? nullptr : found->second;
  }
  bool is_quantized(const std::string& name) const {
    return find(name + "_quantized") != nullptr && find(name + "_scale") != nullptr;
  }
  // What its users see: behind the quantization where there is one.
  Edge* find_counterpart(const Edge& value) const {
    const std::string name(value.name);
    if (Edge* behind = find(name + "_DequantizeLinear_Output")) return behind;
    if (is_quantized(name)) return find(name + "_quantized");
    if (Edge* same = find(name)) return same;
    return is_range_only(*value.producer) ? find_counterpart(*value.producer->inputs[0]) : nullptr;
  }
  // Quantization removes an activation that the range of its input stands for: then that input is what the
  // activation would have made.
  static bool is_range_only(const Node& node) {
    return (node.op_type == "Relu" || node.op_type == "Clip") && node.inputs[0]->producer != nullptr;
  }
  bool is_removed(const Node& node) const {
    return is_range_only(node) && find(std::string(node.outputs[0]->name)) == nullptr;
  }
  bool stands_for_another(const Edge& value) const {
    const auto users = users_.find(&value);
    return users != users_.end() && std::any_of(users->second.begin(), users->second.end(),
                                                [&](const Node* user) { return is_removed(*user); });
  }

  // Scale and zero point of a counterpart in integers; nothing if it is in floats.
  std::vector<Edge*> scale_of(const Edge& value, const Edge* other) const {
    const std::string name(value.name);
    if (!is_quantized(name) || other != find(name + "_quantized")) {
      const bool is_behind = is_range_only(*value.producer);
      return is_behind ? scale_of(*value.producer->inputs[0], other) : std::vector<Edge*>();
    }
    std::vector<Edge*> numbers = {find(name + "_scale")};
    if (Edge* zero = find(name + "_zero_point")) numbers.push_back(zero);
    return numbers;
  }

  // The floats that integers stand for.
  Edge* dequantized(const Edge& value, Edge* other) {
    const std::vector<Edge*> numbers = scale_of(value, other);
    if (numbers.empty()) return other;
    std::vector<Edge*> inputs = {other};
    inputs.insert(inputs.end(), numbers.begin(), numbers.end());
    Edge* real = graph_.add_edge(fmt::format("{}/dequantized", other->name));
    Edge* const outputs[] = {real};
    graph_.add_node("", "DequantizeLinear", fmt::format("dequantize {}", other->name), inputs, outputs)
        ->opset = kOpset;
    return real;
  }

  // Whatever uses the counterpart gets the first model's value, in the form that it had.
  void hand_over(Edge* value, Edge* other) {
    Edge* given = value;
    if (const std::vector<Edge*> numbers = scale_of(*value, other); !numbers.empty()) {
      std::vector<Edge*> inputs = {value};
      inputs.insert(inputs.end(), numbers.begin(), numbers.end());
      given = add_conversion("QuantizeLinear", *other, inputs, {});
    } else if (value->facts.type.type != other->facts.type.type) {
      const auto to = static_cast<int64_t>(other->facts.type.type);
      given = add_conversion("Cast", *other, {value}, AttributeList(graph_.arena()).set("to", to).list());
    }
    for (Node* user : users_[other]) std::replace(user->inputs.begin(), user->inputs.end(), other, given);
  }

  Edge* add_conversion(std::string_view op_type, const Edge& like, const std::vector<Edge*>& inputs,
                       std::span<const Attribute> attributes) {
    Edge* made = graph_.add_edge(fmt::format("{}/handed over", like.name));
    Edge* const outputs[] = {made};
    graph_.add_node("", op_type, fmt::format("hand over {}", like.name), inputs, outputs, attributes)->opset =
        kOpset;
    return made;
  }

  Edge* observe_pair(Edge* value, Edge* other, size_t number) {
    Edge* numbers = graph_.add_edge(fmt::format("{}/difference_{}", value->name, number));
    Edge *const inputs[] = {value, other}, *const outputs[] = {numbers};
    graph_.add_node(kPlimsollDomain, "ObserveDifference", "", inputs, outputs);
    return numbers;
  }

  // The nodes that a value needs and that have not run, in the order they had.
  void emit_what_makes(const Edge* value) {
    std::vector<size_t> missing;
    std::vector<const Edge*> open = {value};
    const auto ask = [&](const Edge* edge) {
      if (edge != nullptr && edge->graph == &graph_ && edge->producer != nullptr) open.push_back(edge);
    };
    while (!open.empty()) {
      Node* node = open.back()->producer;
      open.pop_back();
      const auto place = place_.find(node);
      if (place == place_.end() || !emitted_.insert(node).second) continue;  // added here, or there already
      missing.push_back(place->second);
      for (const Edge* input : node->inputs) ask(input);
      for (const Attribute& attribute : node->attributes) ask_captured(attribute, ask);
    }
    std::sort(missing.begin(), missing.end());
    for (size_t at : missing) graph_.nodes.push_back(nodes_[at]);
  }

  template <typename F>
  static void ask_captured(const Attribute& attribute, F&& ask) {
    const auto look = [&](Graph& graph) {
      for (const Node* node : graph.nodes) {
        for (const Edge* input : node->inputs) ask(input);
      }
      for (const Edge* output : graph.outputs) ask(output);
    };
    if (attribute.graph != nullptr) attribute.graph->for_each_graph(look);
    for (Graph* body : attribute.graphs) body->for_each_graph(look);
  }

  Graph& graph_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, size_t> place_;
  std::unordered_set<const Node*> emitted_;
  std::unordered_map<const Edge*, std::vector<Node*>> users_;
  std::vector<Edge*> first_;  // values that nodes make
  std::unordered_map<std::string_view, Edge*> second_;
  std::unordered_set<const Edge*> outputs_;
};

}  // namespace

std::vector<std::string> call_second_model(Graph& first, Graph& second) {
  std::vector<Edge*> inputs;
  for (const Edge* input : second.inputs) inputs.push_back(counterpart(first, *input));
  std::vector<std::string> outputs;
  for (const Edge* output : second.outputs) outputs.emplace_back(output->name);
  Function function;
  function.domain = kPlimsollDomain;
  function.name = "SecondModel";
  function.body = &second;
  const Function functions[] = {function};
  first.functions = first.arena().copy(std::span<const Function>(functions));
  first.add_node(kPlimsollDomain, function.name, kSecondModel, inputs, {});
  return outputs;
}

std::vector<ComparedValue> observe_differences(Graph& graph, const std::vector<std::string>& second_outputs,
                                               const LockstepOptions& options) {
  return Lockstep(graph).observe(second_outputs, options);
}

}  // namespace plimsoll
