// What every way to quantize a model shares: nodes in their new order, names as ONNX Runtime's tool gives
// them, weights that become integers.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/builder.h"
#include "quantize/spill_file.h"
#include "quantize/weight_reader.h"

namespace plimsoll {

// Which nodes are to be quantized.
struct NodeFilter {
  std::set<std::string, std::less<>> op_types;        // empty: all that can be
  std::set<std::string, std::less<>> only_nodes;      // empty: all
  std::set<std::string, std::less<>> excluded_nodes;  // by name
  bool wants(const Node& node) const;
  // Throws kInvalidArgument of a name that no node has, those in bodies included if these count.
  void check(const Graph& graph, bool bodies = false) const;
};

// What became of the model, for the report.
struct QuantizedNode {
  std::string name, op_type, became;
};
struct QuantizeOutcome {
  std::vector<QuantizedNode> quantized;
  std::vector<QuantizedNode> left;  // of a kind that can be quantized; `became` says why it was not
};

// Where things come from and go; all of it outlives the rewrite.
struct QuantizeContext {
  Graph& graph;
  SpillFile& spill;
  WeightReader& reader;
  QuantizeOutcome& outcome;
  // Told after each node: how many of how many are done. May throw to stop.
  std::function<void(int64_t done, int64_t all)> progress;
};

// A value in integers: what stands for it, and how to come back.
struct QuantizedValue {
  Edge *q = nullptr, *scale = nullptr, *zero_point = nullptr;
  int64_t axis = -1, block = 0;
};

// How a weight is quantized.
struct WeightRules {
  ElementType type = ElementType::kInt8;
  bool symmetric = true, reduced = false;
  float least_range = 0;
};

class Rewriter {
 public:
  explicit Rewriter(QuantizeContext& context) : context_(context), graph_(context.graph) {}
  Rewriter(const Rewriter&) = delete;
  virtual ~Rewriter() = default;

 protected:
  // Calls `rewrite` for every node of the root in order, with the list of nodes emptied before: what is to
  // stay is kept, what is new emitted.
  template <typename F>
  void each_node(F&& rewrite) {
    const std::vector<Node*> old(graph_.nodes.begin(), graph_.nodes.end());
    graph_.nodes.clear();
    int64_t done = 0;
    for (Node* node : old) {
      rewrite(*node);
      if (context_.progress) context_.progress(++done, static_cast<int64_t>(old.size()));
    }
  }
  void keep(Node& node) { graph_.nodes.push_back(&node); }
  Node* emit(std::string_view op_type, const std::string& name, std::vector<Edge*> inputs,
             std::vector<Edge*> outputs, std::span<const Attribute> attributes = {},
             std::string_view domain = "");
  Edge* edge(const std::string& name, ElementType type = ElementType::kUndefined);
  AttributeList attributes() const { return AttributeList(graph_.arena()); }

  // Constants with exactly this name. Large ones go to the file.
  Edge* constant(const std::string& name, ElementType type, std::span<const int64_t> dims,
                 std::span<const std::byte> bytes);
  struct Room {
    Edge* edge;
    std::span<std::byte> bytes;  // to be filled, then settled
  };
  Room room(const std::string& name, ElementType type, std::span<const int64_t> dims);
  void settle(const Room& room) const;
  Edge* reals(const std::string& name, ElementType type, std::span<const int64_t> dims,
              std::span<const float> values);
  Edge* whole_numbers(const std::string& name, ElementType type, std::span<const int64_t> dims,
                      std::span<const int32_t> values);

  // NAME_quantized, NAME_scale, NAME_zero_point of a constant, made once; per channel along `axis` if it is
  // not negative. Scales take the weight's own type.
  const QuantizedValue& quantize_weight(Edge& weight, const WeightRules& rules, int64_t axis);
  // Of a matrix with a block also for every so many elements along the axis.
  std::vector<LinearParameters> weight_parameters(const Edge& weight, const WeightRules& rules, int64_t axis,
                                                  int64_t block = 0);
  // The same with parameters from elsewhere.
  const QuantizedValue& store_weight(Edge& weight, ElementType type,
                                     std::span<const LinearParameters> parameters, int64_t axis,
                                     int64_t block = 0);

  static bool is_weight(const Edge* edge);  // a constant of floats
  static bool is_float(const Edge* edge);   // what is known to be floats of 16 or 32 bits
  static bool is_float32(const Edge* edge);

  void note(const Node& node, std::string_view became) {
    context_.outcome.quantized.push_back(
        {std::string(node.name), std::string(node.op_type), std::string(became)});
  }
  void note_left(const Node& node, std::string_view why) {
    context_.outcome.left.push_back({std::string(node.name), std::string(node.op_type), std::string(why)});
  }

  QuantizeContext& context_;
  Graph& graph_;
  std::unordered_map<const Edge*, QuantizedValue> values_;
};

// Lists of floats that Constant nodes make become initializers, under their names: weights like any other.
// Nodes need not be resolved.
void adopt_constants(Graph& graph);
// Initializers that nothing uses any more leave the graph, and the inputs that stood for them.
void drop_unused_initializers(Graph& graph);
// Who made the model, as ONNX Runtime's tool says it.
void sign_as_quantized(Graph& graph);
// An Error (kInvalidArgument) where the model has quantized operators already.
void refuse_quantized(const Graph& graph);

}  // namespace plimsoll
