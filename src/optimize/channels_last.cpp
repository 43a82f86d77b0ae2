#include <algorithm>
#include <unordered_map>

#include "graph/infer.h"
#include "graph/layout.h"
#include "optimize/editor.h"
#include "optimize/layout_changes.h"
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

// A value whose number of dimensions is not known, or too small, cannot be moved.
bool can_move(const Node& node, const Layout& layout) {
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    if (layout.inputs[i] && rank_of(node.input(i)) < 3) return false;
  }
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    if (layout.outputs[i] && node.outputs[i] != nullptr && rank_of(node.outputs[i]) < 3) return false;
  }
  return true;
}

// Chooses, for one graph, the nodes that run channels-last: those that want it, and around them what
// makes the Transposes that remain cheapest. Then rewrites them. What a node has to say about it, its
// operator knows (graph/layout.h).
class LayoutPass {
 public:
  LayoutPass(Graph& graph, Editor& editor)
      : graph_(graph),
        editor_(editor),
        nodes_(editor.nodes(graph)),
        layouts_(editor.memory()),
        vertices_(editor.memory()),
        is_last_(editor.memory()),
        last_(editor.memory()) {}

  void run() {
    const bool wanted = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node* node) {
      const Layout layout = ask(*node);
      return layout.choice == LayoutChoice::kMoved && layout.mover == LayoutMover::kNone;
    });
    if (!wanted) return;
    for (const Node* node : nodes_) layouts_[node] = ask(*node);
    choose();
    for (Node* node : nodes_) {
      if (editor_.alive(*node) && is_last_[node]) rewrite(*node);
    }
    for (const auto& [edge, last] : made_) {
      if (editor_.use_count(*edge) > 0) make_plain(*edge, *last);
    }
  }

 private:
  Layout ask(const Node& node) const {
    if (node.op->layout == nullptr || node.inputs.empty() || node.outputs.empty() ||
        node.outputs[0] == nullptr)
      return {};
    std::vector<bool> used;
    for (const Edge* output : node.outputs)
      used.push_back(output != nullptr && editor_.use_count(*output) > 0);
    const std::vector<Facts> inputs = facts_of_edges(node.inputs);
    std::vector<Facts> outputs = facts_of_edges(node.outputs);
    LayoutContext context(node, inputs, outputs, std::move(used));
    node.op->layout(context);
    return can_move(node, context.layout) ? std::move(context.layout) : Layout{};
  }

  // ---- the choice ----------------------------------------------------------------------------------
  void choose() {
    for (const Node* node : nodes_) {
      const LayoutChoice choice = layouts_[node].choice;
      vertices_[node] = choice == LayoutChoice::kPlain   ? MinCut::kSink
                        : choice == LayoutChoice::kMoved ? MinCut::kSource
                                                         : cut_.add_vertex();
    }
    std::pmr::unordered_map<const Edge*, bool> seen(editor_.memory());
    for (const Node* node : nodes_) {
      const Layout& ports = layouts_[node];
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
          layouts_[node].choice != LayoutChoice::kPlain && sides[static_cast<size_t>(vertices_[node])];
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
      const std::vector<bool>& ports = layouts_[user].inputs;
      for (size_t i = 0; i < user->inputs.size(); ++i) {
        if (user->inputs[i] == &edge)
          add_user(i < ports.size() && ports[i] ? vertices_[user] : MinCut::kSink);
      }
    }
  }

  int vertex_of_producer(const Edge& edge) {
    const Node* producer = edge.producer;
    if (producer == nullptr || producer->graph != &graph_) return MinCut::kSink;
    const Layout& ports = layouts_[producer];
    for (size_t i = 0; i < ports.outputs.size(); ++i) {
      if (producer->outputs[i] == &edge && ports.outputs[i]) return vertices_[producer];
    }
    return MinCut::kSink;
  }

  // ---- the rewrite ---------------------------------------------------------------------------------
  void rewrite(Node& node) {
    const Layout& layout = layouts_[&node];
    if (layout.mover == LayoutMover::kMoves) return drop_mover(node);
    if (layout.mover == LayoutMover::kMovesBack) {
      last_[node.outputs[0]] = node.inputs[0];
      return;
    }
    std::vector<Edge*> inputs(node.inputs.begin(), node.inputs.end());
    for (const NodeChanges::InputChange& change : layout.changes.inputs) {
      if (inputs.size() <= change.input) inputs.resize(change.input + 1);
      inputs[change.input] = changed_input(node, inputs[change.input], change, editor_);
    }
    const AttributeList attributes = layout.changes.changed_attributes(editor_.arena(), node);
    if (layout.output_list) put_output_in_order(node, *layout.output_list, editor_);
    for (size_t i = 0; i < layout.inputs.size(); ++i) {
      if (layout.inputs[i]) inputs[i] = channels_last(*node.inputs[i], node);
    }
    for (size_t i = 0; i < layout.outputs.size(); ++i) {
      // Another output of the node, which nobody uses, would be channels-last too.
      if (i > 0 && !layout.outputs[i] && node.outputs[i] != nullptr &&
          editor_.use_count(*node.outputs[i]) == 0)
        node.outputs[i] = nullptr;
      if (!layout.outputs[i] || node.outputs[i] == nullptr) continue;
      Edge* plain = node.outputs[i];
      Edge* last = editor_.renew_output(node, i);
      permute_facts(*last, LayoutContext::order(last->facts.type.rank()));
      last_[plain] = last;
      made_.emplace_back(plain, last);
    }
    const bool is_ours = std::any_of(attributes.list().begin(), attributes.list().end(),
                                     [](const Attribute& a) { return a.name == "channels_last"; });
    editor_.become(node, is_ours ? kPlimsollDomain : node.domain, node.op_type, inputs, attributes.list());
  }

  // A node of the model that does what the layout does already.
  void drop_mover(Node& node) {
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
      made = moved_constant(user, edge, editor_);
    } else {
      made = transposed(user, edge, LayoutContext::order(edge.facts.type.rank()), editor_);
    }
    last_[&edge] = made;
    return made;
  }

  void make_plain(Edge& plain, Edge& last) {
    AttributeList attributes(editor_.arena());
    attributes.set(
        "perm", std::span<const int64_t>(inverse_permutation(LayoutContext::order(plain.facts.type.rank()))));
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
  std::pmr::vector<Node*> nodes_;
  std::pmr::unordered_map<const Node*, Layout> layouts_;
  std::pmr::unordered_map<const Node*, int> vertices_;
  std::pmr::unordered_map<const Node*, bool> is_last_;
  MinCut cut_;
  std::pmr::unordered_map<const Edge*, Edge*> last_;  // a value's channels-last form
  std::vector<std::pair<Edge*, Edge*>> made_;         // those whose plain form nobody makes yet
};

}  // namespace

bool use_channels_last(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) LayoutPass(*graph, editor).run();
  return editor.finish();
}

}  // namespace plimsoll
