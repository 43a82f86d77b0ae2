#include "random_graph.h"

#include <algorithm>
#include <numeric>

namespace plimsoll {

RandomGraph::RandomGraph(uint32_t seed, int steps)
    : budget_("random", 0),
      arena_(budget_),
      dims_(arena_),
      graph_(std::make_unique<Graph>(arena_, dims_)),
      current_(graph_.get()),
      random_(seed * 2654435761u + 1) {
  const std::vector<int> opsets = {11, 13, 17, 18, 20};
  opset_ = one_of(opsets);
  imports_[0] = {"", opset_};
  graph_->opsets = imports_;
  graph_->ir_version = 8;
  graph_->name = "random";
  const int64_t inputs = between(1, 3);
  for (int64_t i = 0; i < inputs; ++i) add_input();
  const int64_t wanted = between(2, 14);
  for (int64_t i = 0; i < std::min<int64_t>(wanted, steps); ++i) step();

  // What nobody uses is an output, and a few of the others. The choice does not disturb the steps.
  std::mt19937 outputs_random(seed);
  std::vector<int> uses = count_uses(*graph_);
  for (size_t i = 0; i < items_.size(); ++i) {
    Edge* edge = items_[i].edge;
    const bool extra = outputs_random() % 10 == 0;
    if (edge->producer == nullptr || (uses[edge->id] > 0 && !extra)) continue;
    edge->facts.type.type = ElementType::kFloat;
    graph_->outputs.push_back(edge);
    output_names_.emplace_back(edge->name);
  }
  if (graph_->outputs.empty()) {
    Edge* edge = node("Identity", {items_[0].edge});
    edge->facts.type.type = ElementType::kFloat;
    graph_->outputs.push_back(edge);
    output_names_.emplace_back(edge->name);
  }
}

namespace {

void describe_graph(const Graph& graph, const std::string& indent, std::string& text) {
  for (const Node* node : graph.nodes) {
    text += fmt::format("{}{}", indent, node->op_type);
    for (const Edge* edge : node->inputs) {
      text += edge == nullptr ? " -" : fmt::format(" {}", edge->name);
      if (edge != nullptr && edge->data != nullptr) {
        text += to_string(edge->data->dims);
        if (edge->data->type == ElementType::kInt64) {
          const auto* values = reinterpret_cast<const int64_t*>(edge->data->bytes.data());
          text += "=" + to_string(std::span(values, edge->data->bytes.size() / 8));
        }
      }
    }
    text += " ->";
    for (const Edge* edge : node->outputs) text += edge == nullptr ? " -" : fmt::format(" {}", edge->name);
    for (const Attribute& a : node->attributes) {
      text += fmt::format("  {}=", a.name);
      if (a.type == AttributeType::kInt) text += std::to_string(a.i);
      if (a.type == AttributeType::kFloat) text += std::to_string(a.f);
      if (a.type == AttributeType::kString) text += a.s;
      if (a.type == AttributeType::kInts) text += to_string(a.ints);
    }
    text += "\n";
    for (const Attribute& a : node->attributes) {
      if (a.graph == nullptr) continue;
      text += fmt::format("{}  {}:\n", indent, a.name);
      describe_graph(*a.graph, indent + "    ", text);
    }
  }
  text += indent + "outputs";
  for (const Edge* edge : graph.outputs) text += fmt::format(" {}", edge->name);
  text += "\n";
}

}  // namespace

std::string RandomGraph::describe() const {
  std::string text = fmt::format("opset {}\n", opset_);
  for (size_t i = 0; i < graph_->inputs.size(); ++i)
    text += fmt::format("{} {} = {}\n", graph_->inputs[i]->name, to_string(graph_->inputs[i]->facts.type),
                        to_string(inputs_[i].GetShape()));
  describe_graph(*graph_, "", text);
  return text;
}

// Not std's distributions: they differ from library to library.
int64_t RandomGraph::between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

bool RandomGraph::chance(double probability) {
  return static_cast<double>(random_() % 10000) < probability * 10000;
}

std::string RandomGraph::one_of(std::initializer_list<const char*> list) {
  return list.begin()[between(0, static_cast<int64_t>(list.size()) - 1)];
}

RandomGraph::Shape RandomGraph::random_shape(int64_t low_rank, int64_t high_rank) {
  Shape shape(static_cast<size_t>(between(low_rank, high_rank)));
  for (int64_t& d : shape) d = chance(0.2) ? 1 : between(2, shape.size() > 3 ? 4 : 6);
  return shape;
}

RandomGraph::Shape RandomGraph::random_permutation(size_t rank) {
  Shape perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = rank; i-- > 1;)
    std::swap(perm[i], perm[static_cast<size_t>(between(0, static_cast<int64_t>(i)))]);
  return perm;
}

void RandomGraph::step() {
  using Step = void (RandomGraph::*)();
  struct Choice {
    Step step;
    int weight;
  };
  static const std::vector<Choice> choices = {
      {&RandomGraph::unary, 8},
      {&RandomGraph::binary, 9},
      {&RandomGraph::transpose, 7},
      {&RandomGraph::matmul, 5},
      {&RandomGraph::linear, 6},
      {&RandomGraph::gemm, 3},
      {&RandomGraph::attention, 2},
      {&RandomGraph::conv, 5},
      {&RandomGraph::conv_block, 5},
      {&RandomGraph::conv_transpose, 2},
      {&RandomGraph::mobile_block, 1},
      {&RandomGraph::batch_normalization, 3},
      {&RandomGraph::affine, 3},
      {&RandomGraph::pool, 4},
      {&RandomGraph::global_pool, 2},
      {&RandomGraph::reshape, 5},
      {&RandomGraph::computed_reshape, 4},
      {&RandomGraph::squeeze, 3},
      {&RandomGraph::unsqueeze, 3},
      {&RandomGraph::flatten, 2},
      {&RandomGraph::concat, 4},
      {&RandomGraph::split, 3},
      {&RandomGraph::slice, 4},
      {&RandomGraph::pad, 3},
      {&RandomGraph::softmax, 3},
      {&RandomGraph::layer_normalization, 3},
      {&RandomGraph::gelu, 2},
      {&RandomGraph::hard_swish, 2},
      {&RandomGraph::silu, 2},
      {&RandomGraph::reduce, 4},
      {&RandomGraph::expand, 2},
      {&RandomGraph::gather, 2},
      {&RandomGraph::resize, 2},
      {&RandomGraph::shape_arithmetic, 3},
      {&RandomGraph::where, 2},
      {&RandomGraph::dropout, 2},
      {&RandomGraph::residual, 3},
      {&RandomGraph::branch, 4},
  };
  static const int total = [] {
    int sum = 0;
    for (const Choice& c : choices) sum += c.weight;
    return sum;
  }();
  int64_t at = between(0, total - 1);
  for (const Choice& c : choices) {
    if (at < c.weight) return (this->*c.step)();
    at -= c.weight;
  }
}

}  // namespace plimsoll
