#include <memory>
#include <unordered_map>

#include "graph/infer.h"
#include "graph/lower.h"
#include "optimize/editor.h"
#include "prepare/lower.h"

namespace plimsoll {
namespace {

class ValueLowering {
 public:
  explicit ValueLowering(Graph& root) : editor_(root) {}

  // Outer graphs first: what bodies see of them is known then.
  bool run() {
    for (Graph* graph : editor_.graphs()) {
      for (Node* node : editor_.nodes(*graph)) {
        if (node->op->lower != nullptr && editor_.alive(*node)) lower(*node);
      }
    }
    return editor_.finish();
  }

 private:
  class Context;

  void lower(Node& node);

  Editor editor_;
  std::unordered_map<const Edge*, KnownElements> known_;
  std::vector<std::unique_ptr<EditorPlace>> builders_;
};

class ValueLowering::Context : public LowerContext {
 public:
  Context(ValueLowering& pass, Node& node, std::span<const Facts> inputs, std::span<Facts> outputs)
      : LowerContext(node, inputs, outputs), pass_(pass), own_(node) {}

  KnownElements elements(size_t input) const override {
    const auto found = pass_.known_.find(own_.input(input));
    return found == pass_.known_.end() ? KnownElements() : found->second;
  }
  GraphBuilder& builder() override {
    if (builder_ == nullptr) {
      pass_.builders_.push_back(std::make_unique<EditorPlace>(pass_.editor_, *own_.graph, own_.name,
                                                              pass_.editor_.position(own_) / 4 * 4));
      builder_ = pass_.builders_.back().get();
    }
    return *builder_;
  }
  void replace(size_t output, Edge* edge) override {
    if (!has_output(output)) return;
    Edge* from = own_.outputs[output];
    if (const auto inner = pass_.known_.find(edge); inner != pass_.known_.end())
      pass_.known_[from] = inner->second;
    // Who knows an output of a graph, or its elements, knows it by its edge.
    if (pass_.editor_.is_graph_output(*from)) return pass_.editor_.become(own_, "", "Identity", {edge}, {});
    pass_.editor_.replace(*from, *edge);
  }
  // Made once, when first asked for.
  void consists_of(size_t output, KnownElements elements) override {
    if (!has_output(output)) return;
    auto made = std::make_shared<std::optional<std::vector<Edge*>>>();
    pass_.known_[own_.outputs[output]] = [made, make = std::move(elements)] {
      if (!*made) *made = make();
      return **made;
    };
  }

 private:
  ValueLowering& pass_;
  Node& own_;
  GraphBuilder* builder_ = nullptr;
};

void ValueLowering::lower(Node& node) {
  const std::vector<Facts> inputs = facts_of_edges(node.inputs);
  std::vector<Facts> outputs = facts_of_edges(node.outputs);
  Context context(*this, node, inputs, outputs);
  try {
    node.op->lower(context);
  } catch (const Error& error) {
    // A position outside, say: the error belongs to the run, should it come there.
    if (error.code() != ErrorCode::kInvalidModel) throw;
  }
}

}  // namespace

bool lower_values(Graph& root) {
  // Most models have tensors only.
  bool any = false;
  root.for_each_graph([&](const Graph& graph) {
    for (const Node* node : graph.nodes) {
      for (const Edge* edge : node->outputs)
        any = any || (edge != nullptr && edge->facts.type.kind != ValueKind::kTensor);
    }
  });
  return any && ValueLowering(root).run();
}

}  // namespace plimsoll
