#include "train/forward.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "graph/op_def.h"
#include "ops/matmul_common.h"

namespace plimsoll {

bool is_rounding(const Node& node) {
  return node.domain.empty() && node.op_type == "Cast" &&
         node.inputs[0]->facts.type.type == ElementType::kFloat &&
         node.outputs[0]->facts.type.type == ElementType::kBFloat16;
}

namespace {

bool is_made_by(const std::vector<bool>& nodes, const Edge* edge) {
  return edge->producer != nullptr && nodes[edge->producer->id];
}

}  // namespace

ForwardPart forward_part(const Graph& graph, std::span<Edge* const> outputs) {
  ForwardPart part{std::vector<bool>(graph.node_count(), false),
                   std::vector<bool>(graph.edge_count(), false)};
  std::vector<bool> needed(graph.edge_count(), false);
  for (const Edge* edge : outputs) needed[edge->id] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = *graph.nodes[n];
    const auto is_needed = [&](const Edge* edge) { return edge != nullptr && needed[edge->id]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) continue;
    part.nodes[node.id] = true;
    for (const Edge* edge : node.inputs) {
      if (edge != nullptr) needed[edge->id] = true;
    }
  }
  for (const Node* node : graph.nodes) {
    if (is_rounding(*node) && is_made_by(part.nodes, node->inputs[0])) part.nodes[node->id] = true;
    if (part.nodes[node->id]) continue;
    for (const Edge* edge : node->inputs) {
      if (edge != nullptr && is_made_by(part.nodes, edge)) part.stashed[edge->id] = true;
    }
  }
  return part;
}

namespace {

constexpr std::array<std::string_view, 5> kAttention = {"Softmax", "BiasSoftmax", "Attention",
                                                        "MultiHeadAttention", "FusedAttention"};
constexpr std::array<std::string_view, 5> kNorms = {"LayerNormalization", "SimplifiedLayerNormalization",
                                                    "RMSNormalization", "SkipLayerNormalization",
                                                    "BiasLayerNormalization"};

template <size_t N>
bool is_one_of(const Node& node, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), node.op_type) != names.end();
}

bool is_data(const Edge* edge) {
  return edge != nullptr && edge->data == nullptr && edge->facts.type.ranked && edge->facts.type.rank() > 0;
}

class LayerFinder {
 public:
  LayerFinder(const Graph& graph, const ForwardPart& forward)
      : graph_(graph), forward_(forward), place_(graph.node_count(), 0) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) place_[graph.nodes[n]->id] = n;
  }

  Layers run() {
    Layers layers{std::vector<int>(graph_.node_count(), kNoLayer), {}, nullptr};
    const Edge* last_sum = nullptr;
    for (const Node* node : graph_.nodes) {
      const Sum sum = residual(*node);
      if (sum.around == nullptr) continue;
      if (goes_through_attention(sum)) {
        if (std::find(layers.begins.begin(), layers.begins.end(), sum.around) == layers.begins.end())
          layers.begins.push_back(sum.around);
        last_sum = node->outputs[0];
        layers.end = nullptr;
      } else if (last_sum != nullptr && layers.end == nullptr) {
        layers.end = node->outputs[0];
      }
    }
    if (layers.begins.empty()) return layers;
    if (layers.end == nullptr) layers.end = last_sum;
    // With the norm last, it belongs to the layer.
    const bool norm_first = read_by_norm_alone(layers.begins[0]);
    if (!norm_first) {
      if (const Node* norm = only_reader(layers.end); norm != nullptr && is_one_of(*norm, kNorms))
        layers.end = norm->outputs[0];
    }
    number(layers);
    return layers;
  }

 private:
  // A value that is added to something that was computed from it.
  struct Sum {
    const Edge *around = nullptr, *through = nullptr;
  };

  // A product with an addend is a sum too: fusion has made it of both.
  static const Edge* addend_of(const Node& node) {
    const bool fused = node.domain == kPlimsollDomain && node.op_type == "FusedMatMul";
    return fused ? node.input(kMatMulAddend) : nullptr;
  }

  // Without `around` if it is no such sum.
  Sum residual(const Node& node) const {
    if (!forward_.nodes[node.id]) return {};
    if (const Edge* addend = addend_of(node)) {
      const bool fits = is_data(addend) && is_data(node.inputs[0]) && same_shape(addend, node.outputs[0]) &&
                        depends(node.inputs[0], addend);
      return fits ? Sum{addend, node.inputs[0]} : Sum{};
    }
    if (node.op_type != "Add" || node.inputs.size() != 2) return {};
    const Edge *a = node.inputs[0], *b = node.inputs[1];
    if (!is_data(a) || !is_data(b) || !same_shape(a, b)) return {};
    if (depends(b, a)) return {a, b};
    if (depends(a, b)) return {b, a};
    return {};
  }

  static bool same_shape(const Edge* a, const Edge* b) {
    return std::equal(a->facts.type.dims.begin(), a->facts.type.dims.end(), b->facts.type.dims.begin(),
                      b->facts.type.dims.end());
  }

  bool depends(const Edge* to, const Edge* from) const {
    return between(from, to, [](const Node&) { return true; });
  }
  bool goes_through_attention(const Sum& sum) const {
    return between(sum.around, sum.through, [](const Node& node) { return is_one_of(node, kAttention); });
  }

  // Whether some way from one edge to another goes through a node that `wanted` accepts.
  template <typename Wanted>
  bool between(const Edge* from, const Edge* to, const Wanted& wanted) const {
    if (to->producer == nullptr) return false;
    const size_t first = from->producer == nullptr ? 0 : place_[from->producer->id] + 1;
    const size_t last = place_[to->producer->id];
    if (last < first) return false;
    // Two facts of each node of the range: whether it is behind `from`, and whether so through a wanted one.
    std::vector<uint8_t> state(last - first + 1, 0);
    for (size_t n = first; n <= last; ++n) {
      const Node& node = *graph_.nodes[n];
      uint8_t here = 0;
      for (const Edge* edge : node.inputs) {
        if (edge == nullptr) continue;
        if (edge == from) here |= 1;
        if (edge->producer == nullptr || edge->producer->graph != &graph_) continue;
        const size_t place = place_[edge->producer->id];
        if (place >= first && place < n) here |= state[place - first];
      }
      if ((here & 1) != 0 && wanted(node)) here |= 2;
      state[n - first] = here;
    }
    return (state.back() & 2) != 0;
  }

  const Node* only_reader(const Edge* edge) const {
    const Node* reader = nullptr;
    for (const Node* node : graph_.nodes) {
      if (!forward_.nodes[node->id] || is_rounding(*node)) continue;
      if (std::find(node->inputs.begin(), node->inputs.end(), edge) == node->inputs.end()) continue;
      if (reader != nullptr) return nullptr;
      reader = node;
    }
    return reader;
  }

  // Besides the sum.
  bool read_by_norm_alone(const Edge* edge) const {
    size_t norms = 0, others = 0;
    for (const Node* node : graph_.nodes) {
      if (!forward_.nodes[node->id] || is_rounding(*node)) continue;
      if (std::find(node->inputs.begin(), node->inputs.end(), edge) == node->inputs.end()) continue;
      if (node->op_type == "Add" || addend_of(*node) == edge) continue;
      ++(is_one_of(*node, kNorms) || node->op_type == "ReduceMean" || node->op_type == "Sub" ? norms
                                                                                             : others);
    }
    return norms > 0 && others == 0;
  }

  // A node is in the last layer whose beginning it depends on, unless it depends on the end of all.
  void number(Layers& layers) const {
    std::vector<int> layer(graph_.edge_count(), kNoLayer);
    const int behind = static_cast<int>(layers.begins.size());
    const auto mark = [&](const Edge* edge) {
      for (size_t i = 0; i < layers.begins.size(); ++i) {
        if (layers.begins[i] == edge) layer[edge->id] = std::max(layer[edge->id], static_cast<int>(i));
      }
      if (edge == layers.end) layer[edge->id] = behind;
    };
    for (const Edge* edge : graph_.inputs) mark(edge);
    for (const Node* node : graph_.nodes) {
      if (!forward_.nodes[node->id]) continue;
      int here = kNoLayer;
      for (const Edge* edge : node->inputs) {
        if (edge != nullptr) here = std::max(here, layer[edge->id]);
      }
      layers.of_node[node->id] = here == behind ? kNoLayer : here;
      for (const Edge* edge : node->outputs) {
        if (edge == nullptr) continue;
        layer[edge->id] = here;
        mark(edge);
      }
    }
  }

  const Graph& graph_;
  const ForwardPart& forward_;
  std::vector<size_t> place_;  // by node id
};

}  // namespace

Layers find_layers(const Graph& graph, const ForwardPart& forward) {
  return LayerFinder(graph, forward).run();
}

}  // namespace plimsoll
