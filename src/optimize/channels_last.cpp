#include <algorithm>
#include <unordered_map>

#include "optimize/editor.h"
#include "optimize/layout_operands.h"
#include "optimize/layout_rules.h"
#include "optimize/match.h"
#include "optimize/min_cut.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Elements of a value, with every symbol taken as a middling size, as the price of transposing it. One
// that keeps its bytes in order, because channels or positions are single, costs next to nothing.
int64_t transpose_cost(const Edge& edge) {
  constexpr int64_t kOverhead = 1024;
  constexpr int64_t kMost = int64_t{1} << 40;
  constexpr int64_t kTypicalSize = 64;
  const std::span<const Dim> dims = edge.facts.type.dims;
  bool single_position = true;
  for (Dim d : dims.subspan(2)) single_position &= d == Dim(1);
  if (dims[1] == Dim(1) || single_position) return 1;
  int64_t elements = 1;
  for (Dim d : dims) {
    int64_t size = kTypicalSize;
    try {
      size = d.evaluate([](std::string_view) { return kTypicalSize; });
    } catch (const Error&) {  // it does not divide: any size will do
    }
    elements = std::min(kMost, elements * std::clamp<int64_t>(size, 1, 1 << 20));
  }
  return elements + kOverhead;
}

// Chooses, for one graph, the nodes that run channels-last: those that want it, and around them what
// makes the Transposes that remain cheapest. Then rewrites them.
// A value whose number of dimensions is not known cannot be transposed.
bool all_ranked(const Node& node, const LayoutPorts& ports) {
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    if (ports.inputs[i] && rank_of(node.input(i)) < 3) return false;
  }
  for (size_t i = 0; i < ports.outputs.size(); ++i) {
    if (ports.outputs[i] && node.outputs[i] != nullptr && rank_of(node.outputs[i]) < 3) return false;
  }
  return true;
}

class LayoutPass {
 public:
  LayoutPass(Graph& graph, Editor& editor) : graph_(graph), editor_(editor), nodes_(editor.nodes(graph)) {}

  void run() {
    bool wanted = false;
    for (const Node* node : nodes_) {
      LayoutPorts ports = layout_ports(*node, editor_);
      ports_.emplace(node, all_ranked(*node, ports) ? std::move(ports) : LayoutPorts{});
      wanted |= ports_[node].choice == LayoutChoice::kLast && !is_op(node, "Transpose");
    }
    if (!wanted) return;
    choose();
    for (Node* node : nodes_) {
      if (editor_.alive(*node) && is_last_[node]) rewrite(*node);
    }
    for (const auto& [edge, last] : made_) {
      if (editor_.use_count(*edge) > 0) make_plain(*edge, *last);
    }
  }

 private:
  // ---- the choice ----------------------------------------------------------------------------------
  void choose() {
    for (const Node* node : nodes_) {
      const LayoutChoice choice = ports_[node].choice;
      vertices_[node] = choice == LayoutChoice::kPlain  ? MinCut::kSink
                        : choice == LayoutChoice::kLast ? MinCut::kSource
                                                        : cut_.add_vertex();
    }
    std::unordered_map<const Edge*, bool> seen;
    for (const Node* node : nodes_) {
      const LayoutPorts& ports = ports_[node];
      for (size_t i = 0; i < ports.inputs.size(); ++i) {
        const Edge* edge = node->input(i);
        if (ports.inputs[i] && edge != nullptr && seen.emplace(edge, true).second) price(*edge);
      }
      for (size_t i = 0; i < ports.outputs.size(); ++i) {
        Edge* edge = node->outputs[i];
        if (ports.outputs[i] && edge != nullptr && seen.emplace(edge, true).second) price(*edge);
      }
    }
    const std::vector<bool> sides = cut_.source_side();
    for (const Node* node : nodes_) {
      is_last_[node] =
          ports_[node].choice != LayoutChoice::kPlain && sides[static_cast<size_t>(vertices_[node])];
    }
  }

  // One Transpose serves all users that do not agree with the producer.
  void price(const Edge& edge) {
    const int64_t cost = transpose_cost(edge);
    const int producer = vertex_of_producer(edge);
    const int from_last = cut_.add_vertex();
    const int to_last = cut_.add_vertex();
    cut_.add_arc(producer, from_last, cost);
    cut_.add_arc(to_last, producer, cost);
    const auto add_user = [&](int user) {
      cut_.add_arc(from_last, user, MinCut::kUncuttable);
      cut_.add_arc(user, to_last, MinCut::kUncuttable);
    };
    if (editor_.is_graph_output(edge)) add_user(MinCut::kSink);
    for (const Node* user : editor_.users(edge)) {
      if (user->graph != &graph_) {
        add_user(MinCut::kSink);
        continue;
      }
      const std::vector<bool>& ports = ports_[user].inputs;
      for (size_t i = 0; i < user->inputs.size(); ++i) {
        if (user->inputs[i] == &edge)
          add_user(i < ports.size() && ports[i] ? vertices_[user] : MinCut::kSink);
      }
    }
  }

  int vertex_of_producer(const Edge& edge) {
    const Node* producer = edge.producer;
    if (producer == nullptr || producer->graph != &graph_) return MinCut::kSink;
    const LayoutPorts& ports = ports_[producer];
    for (size_t i = 0; i < ports.outputs.size(); ++i) {
      if (producer->outputs[i] == &edge && ports.outputs[i]) return vertices_[producer];
    }
    return MinCut::kSink;
  }

  // ---- the rewrite ---------------------------------------------------------------------------------
  void rewrite(Node& node) {
    if (is_to_last(node)) return drop_transpose(node);
    if (is_to_first(node)) {
      last_[node.outputs[0]] = node.inputs[0];
      return;
    }
    const LayoutPorts& ports = ports_[&node];
    std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
    AttributeList attributes(editor_.arena(), node);
    adapt_to_channels_last(node, editor_, inputs, attributes);
    for (size_t i = 0; i < ports.inputs.size(); ++i) {
      if (ports.inputs[i]) inputs[i] = channels_last(*node.inputs[i], node);
    }
    for (size_t i = 0; i < ports.outputs.size(); ++i) {
      // Another output of the node, which nobody uses, would be channels-last too.
      if (i > 0 && !ports.outputs[i]) node.outputs[i] = nullptr;
      if (!ports.outputs[i] || node.outputs[i] == nullptr) continue;
      Edge* plain = node.outputs[i];
      Edge* last = editor_.renew_output(node, i);
      permute_facts(*last, to_last_permutation(rank_of(plain)));
      last_[plain] = last;
      made_.emplace_back(plain, last);
    }
    const bool is_ours = std::any_of(attributes.list().begin(), attributes.list().end(),
                                     [](const Attribute& a) { return a.name == "channels_last"; });
    editor_.become(node, is_ours ? kPlimsollDomain : node.domain, node.op_type, inputs, attributes.list());
  }

  // A Transpose of the model that does what the layout does already.
  void drop_transpose(Node& node) {
    const auto found = last_.find(node.inputs[0]);
    Edge* output = node.outputs[0];
    if (found == last_.end()) {
      last_[node.inputs[0]] = output;
      return;
    }
    Edge* last = found->second;
    if (!editor_.replace(*output, *last)) {
      editor_.become(node, "", "Identity", {last}, {});
    } else if (output->producer != nullptr && last->producer == nullptr) {
      rename(last, output);
    }
  }

  // An output of the graph has taken the place of `from`.
  void rename(const Edge* from, Edge* to) {
    for (auto& [plain, last] : last_) {
      if (last == from) last = to;
    }
    for (auto& [plain, last] : made_) {
      if (last == from) last = to;
    }
  }

  Edge* channels_last(Edge& edge, Node& user) {
    const auto found = last_.find(&edge);
    if (found != last_.end()) return found->second;
    Edge* made = nullptr;
    if (is_constant(&edge) && edge.data != nullptr) {
      made = channels_last_constant(user, edge, editor_);
    } else {
      AttributeList attributes(editor_.arena());
      attributes.set("perm", std::span<const int64_t>(to_last_permutation(rank_of(&edge))));
      made = editor_.insert_before(user, "", "Transpose", {&edge}, attributes.list());
    }
    last_[&edge] = made;
    return made;
  }

  void make_plain(Edge& plain, Edge& last) {
    AttributeList attributes(editor_.arena());
    attributes.set("perm", std::span<const int64_t>(to_first_permutation(rank_of(&plain))));
    editor_.insert_after(*last.producer, "", "Transpose", {&last}, attributes.list(), &plain);
  }

  void permute_facts(Edge& edge, const std::vector<int64_t>& perm) {
    std::span<Dim> dims = editor_.arena().array<Dim>(perm.size());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = edge.facts.type.dims[static_cast<size_t>(perm[i])];
    edge.facts.type.dims = dims;
    edge.facts.values.reset();
    edge.facts.constant = nullptr;
  }

  Graph& graph_;
  Editor& editor_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, LayoutPorts> ports_;
  std::unordered_map<const Node*, int> vertices_;
  std::unordered_map<const Node*, bool> is_last_;
  MinCut cut_;
  std::unordered_map<const Edge*, Edge*> last_;  // a value's channels-last form
  std::vector<std::pair<Edge*, Edge*>> made_;    // those whose plain form nobody makes yet
};

}  // namespace

bool use_channels_last(Graph& root, const OptimizeOptions&) {
  Editor editor(root);
  for (Graph* graph : editor.graphs()) LayoutPass(*graph, editor).run();
  return editor.finish();
}

}  // namespace plimsoll
