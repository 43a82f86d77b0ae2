// Elementwise operators of one 8-bit value, up to a QuantizeLinear: whatever they are, 256 bytes say it all.
// The operators themselves, run on all bytes, make the table when constants are folded.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "optimize/quantized.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Operators whose output depends on the elements at the same place alone.
bool is_elementwise(const Node& node) {
  constexpr std::string_view kOnnx[] = {"Abs",
                                        "Add",
                                        "Ceil",
                                        "Celu",
                                        "Clip",
                                        "Div",
                                        "Elu",
                                        "Erf",
                                        "Exp",
                                        "Floor",
                                        "Gelu",
                                        "Max",
                                        "HardSwish",
                                        "Log",
                                        "LeakyRelu",
                                        "Min",
                                        "Mish",
                                        "Mul",
                                        "HardSigmoid",
                                        "Neg",
                                        "PRelu",
                                        "Pow",
                                        "Relu",
                                        "Reciprocal",
                                        "Round",
                                        "Selu",
                                        "Sigmoid",
                                        "Sign",
                                        "Sin",
                                        "Sqrt",
                                        "Softplus",
                                        "Sub",
                                        "Softsign",
                                        "Swish",
                                        "Tanh",
                                        "Cos",
                                        "ThresholdedRelu"};
  constexpr std::string_view kMicrosoft[] = {"Gelu", "FastGelu", "QuickGelu"};
  const auto holds = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), node.op_type) != std::end(list);
  };
  return (node.domain.empty() && holds(kOnnx)) || (node.domain == kMicrosoftDomain && holds(kMicrosoft)) ||
         is_op(&node, "Silu", kPlimsollDomain);
}

// Also behind DequantizeLinear, which is not folded yet.
bool is_one_constant(const Edge* edge) {
  if (is_constant(edge)) return edge->constant->elements() == 1;
  const QuantizedValue value = whole_dequantized(edge);
  return value && is_constant(value.q) && value.q->constant->elements() == 1 && rank_of(edge) <= 1;
}

class TablePass {
 public:
  TablePass(Graph& graph, Editor& editor) : editor_(editor), nodes_(editor.nodes(graph)) {}

  void run() {
    std::vector<Node*> ends;
    for (Node* node : nodes_) {
      Edge* source = source_of(*node);
      if (source == nullptr) continue;
      sources_[node->outputs[0]] = source;
      if (quantized(node)) ends.push_back(node);
    }
    // Those behind first: what is between them has no users then.
    for (size_t i = ends.size(); i-- > 0;) {
      if (editor_.alive(*ends[i])) make_table(*ends[i]);
    }
  }

 private:
  // The byte that the node's output is a function of.
  Edge* source_of(const Node& node) const {
    if (node.outputs.size() != 1 || node.outputs[0] == nullptr) return nullptr;
    if (const QuantizedValue value = whole_dequantized(node.outputs[0]))
      return is_constant(value.q) ? nullptr : known(value.q, value.q);
    if (quantized(&node)) return known(node.input(0), nullptr);
    if (!is_elementwise(node) || node.outputs[0]->facts.type.type != ElementType::kFloat) return nullptr;
    Edge* source = nullptr;
    for (const Edge* input : node.inputs) {
      if (input == nullptr || is_one_constant(input)) continue;
      Edge* found = known(input, nullptr);
      if (found == nullptr || (source != nullptr && found != source)) return nullptr;
      source = found;
    }
    return source != nullptr && same_shape(node.outputs[0], source) ? source : nullptr;
  }

  Edge* known(const Edge* edge, Edge* otherwise) const {
    const auto found = sources_.find(edge);
    return found != sources_.end() ? found->second : otherwise;
  }

  void make_table(Node& end) {
    Edge* source = sources_.at(end.outputs[0]);
    std::vector<uint8_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    const int64_t dims[] = {256};
    Edge* all = editor_.constant("bytes", source->facts.type.type, dims, std::as_bytes(std::span(bytes)));
    std::unordered_map<const Edge*, Edge*> made = {{source, all}};
    EditorPlace place = editor_.before(end);
    Edge* table = rebuild(end.outputs[0], place, made);
    editor_.become(end, kPlimsollDomain, "ByteTable", {source, table}, {});
  }

  // The same operators on all bytes.
  Edge* rebuild(const Edge* edge, EditorPlace& place, std::unordered_map<const Edge*, Edge*>& made) {
    const auto found = made.find(edge);
    if (found != made.end()) return found->second;
    const Node& node = *edge->producer;
    std::vector<Edge*> inputs;
    for (Edge* input : node.inputs) {
      if (input == nullptr || is_one_constant(input)) {
        inputs.push_back(rank_of(input) > 1 ? editor_.constant_view(*input, {}) : input);
      } else {
        inputs.push_back(is_constant(input) ? input : rebuild(input, place, made));
      }
    }
    return made[edge] = place.emit(node.domain, node.op_type, inputs, node.attributes)->outputs[0];
  }

  Editor& editor_;
  std::pmr::vector<Node*> nodes_;
  std::unordered_map<const Edge*, Edge*> sources_;
};

}  // namespace

bool make_byte_tables(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) TablePass(*graph, editor).run();
  return editor.finish();
}

}  // namespace plimsoll
