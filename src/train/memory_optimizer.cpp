#include "train/memory_optimizer.h"

#include <algorithm>
#include <map>

#include "base/checked.h"

namespace plimsoll {

int64_t ClusterPlan::saved_bytes() const {
  int64_t sum = 0;
  for (const ClusterOccurrence& one : occurrences) sum += one.stashed_bytes - one.kept_bytes;
  return sum;
}

bool ClusterPlan::is_on() const {
  return std::any_of(occurrences.begin(), occurrences.end(),
                     [](const ClusterOccurrence& one) { return one.on; });
}

std::string ClusterPlan::config() const {
  return fmt::format("{}:{}:{}", cluster, static_cast<int>(strategy), requested == 0 ? -1 : requested);
}

namespace {

constexpr size_t kMostNodes = 16;  // of a cluster

// By their names, in every domain: more work for a byte than elementwise operators and moves.
bool is_expensive(std::string_view op_type) {
  constexpr std::string_view kParts[] = {"MatMul", "Gemm", "Einsum",  "Conv", "Attention",
                                         "LSTM",   "GRU",  "Softmax", "Norm"};
  return op_type == "RNN" || std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) {
           return op_type.find(part) != std::string_view::npos;
         });
}

int64_t bytes_of(const Facts& facts) {
  if (!facts.is_concrete()) return 0;
  int64_t bits = element_bits(facts.type.type);
  for (const Dim d : facts.type.dims) bits = checked_mul(bits, d.value());
  return (bits + 7) / 8;
}

// A sum of products of symbols, each with a factor: 128.0*batch*seq_len**2.
class SymbolicBytes {
 public:
  void add(const Facts& facts, int sign) {
    Product product{element_bits(facts.type.type) / 8.0 * sign, {}};
    for (const Dim d : facts.type.dims) {
      std::string text = d.to_string();
      std::erase(text, ' ');
      if (text.find_first_of("+-/(") != std::string::npos) {
        product.multiply(fmt::format("({})", text), 1);
      } else {
        multiply_all(product, text);
      }
    }
    std::string symbols;
    for (const auto& [symbol, power] : product.symbols)
      symbols += power == 1 ? fmt::format("*{}", symbol) : fmt::format("*{}**{}", symbol, power);
    factors_[symbols] += product.factor;
  }
  std::string text() const {
    std::string result;
    for (const auto& [product, factor] : factors_) {
      if (factor == 0) continue;
      if (!result.empty()) result += factor < 0 ? " - " : " + ";
      result += fmt::format("{:.1f}{}", result.empty() ? factor : std::abs(factor), product);
    }
    return result.empty() ? "0.0" : result;
  }

 private:
  struct Product {
    double factor = 1;
    std::vector<std::pair<std::string, int>> symbols;  // with their powers, as they come

    void multiply(const std::string& text, int power) {
      if (text.find_first_not_of("0123456789") == std::string::npos) {
        factor *= std::stod(text);
        return;
      }
      const auto known =
          std::find_if(symbols.begin(), symbols.end(), [&](const auto& s) { return s.first == text; });
      if (known == symbols.end()) {
        symbols.emplace_back(text, power);
      } else {
        known->second += power;
      }
    }
  };

  // Of a text like 8*batch*seq_len**2.
  static void multiply_all(Product& product, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('*', at), text.size());
      const std::string factor = text.substr(at, end - at);
      int power = 1;
      at = end + 1;
      if (at < text.size() && text[at] == '*') {
        const size_t next = std::min(text.find('*', at + 1), text.size());
        power = std::stoi(text.substr(at + 1, next - at - 1));
        at = next + 1;
      }
      product.multiply(factor, power);
    }
  }

  std::map<std::string, double> factors_;
};

class ClusterFinder {
 public:
  ClusterFinder(const Graph& graph, const ForwardPart& forward, const Layers& layers,
                const FactsTable& concrete, MemoryProbe probe)
      : graph_(graph),
        forward_(forward),
        layers_(layers),
        concrete_(concrete),
        probe_(probe),
        place_(graph.node_count(), 0) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) place_[graph.nodes[n]->id] = n;
  }

  std::vector<ClusterPlan> run() {
    for (const Node* node : graph_.nodes) {
      if (forward_.nodes[node->id] && may_run_again(*node)) consider(*node);
    }
    std::vector<ClusterPlan> plans;
    for (auto& [key, entry] : found_) {
      entry.plan.symbolic_bytes = entry.symbolic.text();
      plans.push_back(std::move(entry.plan));
    }
    std::stable_sort(plans.begin(), plans.end(), [](const ClusterPlan& a, const ClusterPlan& b) {
      return a.saved_bytes() > b.saved_bytes();
    });
    return plans;
  }

 private:
  struct Entry {
    ClusterPlan plan;
    SymbolicBytes symbolic;
  };

  bool may_run_again(const Node& node) const {
    return node.op != nullptr && node.op->control_flow == nullptr &&
           (probe_.expensive || !is_expensive(node.op_type));
  }
  bool is_boundary(const Edge* edge) const {
    if (!probe_.layers_bound) return false;
    return edge == layers_.end ||
           std::find(layers_.begins.begin(), layers_.begins.end(), edge) != layers_.begins.end();
  }
  // There in the backward part anyway.
  bool is_there(const Edge* edge) const {
    return edge == nullptr || edge->producer == nullptr || forward_.stashed[edge->id] || is_boundary(edge) ||
           concrete_[edge].constant != nullptr || concrete_[edge].values.has_value();
  }

  void consider(const Node& node) {
    ClusterOccurrence one;
    SymbolicBytes symbolic;
    std::vector<std::pair<const Edge*, int>> counted;
    for (const Edge* edge : node.outputs) {
      if (edge == nullptr || !forward_.stashed[edge->id] || is_boundary(edge)) continue;
      one.stashed_bytes += bytes_of(concrete_[edge]);
      counted.emplace_back(edge, 1);
    }
    if (one.stashed_bytes == 0) return;
    std::vector<const Edge*> kept;
    collect(node, one.nodes, kept);
    for (const Edge* edge : kept) {
      one.kept_bytes += bytes_of(concrete_[edge]);
      counted.emplace_back(edge, -1);
    }
    // Worth it only if it saves half.
    if (2 * one.kept_bytes > one.stashed_bytes) return;
    one.node = &node;
    one.layer = layers_.of_node[node.id];
    one.readers = backward_readers(node);
    std::string cluster;
    for (const Node* inner : one.nodes) cluster += std::string(inner->op_type) + "+";
    const RecomputeStrategy strategy =
        one.kept_bytes == 0 ? RecomputeStrategy::kRecompute : RecomputeStrategy::kCompromised;
    Entry& entry = found_[{cluster, strategy}];
    entry.plan.cluster = cluster;
    entry.plan.strategy = strategy;
    for (const auto& [edge, sign] : counted) entry.symbolic.add(edge->facts, sign);
    entry.plan.occurrences.push_back(std::move(one));
  }

  // What must run before the node to have its inputs again, and what would have to be kept for that.
  void collect(const Node& node, std::vector<const Node*>& nodes, std::vector<const Edge*>& kept) const {
    nodes.push_back(&node);
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const Edge* edge : nodes[i]->inputs) {
        if (is_there(edge) || std::find(kept.begin(), kept.end(), edge) != kept.end()) continue;
        const Node* producer = edge->producer;
        if (std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) continue;
        const bool inside = !probe_.layers_bound || layers_.of_node[producer->id] == layers_.of_node[node.id];
        if (inside && may_run_again(*producer) && nodes.size() < kMostNodes) {
          nodes.push_back(producer);
        } else {
          kept.push_back(edge);
        }
      }
    }
    std::sort(nodes.begin(), nodes.end(),
              [&](const Node* a, const Node* b) { return place_[a->id] < place_[b->id]; });
  }

  size_t backward_readers(const Node& of) const {
    size_t count = 0;
    for (const Node* node : graph_.nodes) {
      if (forward_.nodes[node->id]) continue;
      for (const Edge* edge : node->inputs) count += edge != nullptr && edge->producer == &of;
    }
    return count;
  }

  const Graph& graph_;
  const ForwardPart& forward_;
  const Layers& layers_;
  const FactsTable& concrete_;
  MemoryProbe probe_;
  std::vector<size_t> place_;  // by node id
  std::map<std::pair<std::string, RecomputeStrategy>, Entry> found_;
};

void mark(const ClusterPlan& plan, bool all, std::vector<bool>& nodes) {
  for (const ClusterOccurrence& one : plan.occurrences) {
    if (!all && !one.on) continue;
    for (const Node* node : one.nodes) nodes[node->id] = true;
  }
}

}  // namespace

std::vector<ClusterPlan> find_cluster_plans(const Graph& graph, const ForwardPart& forward,
                                            const Layers& layers, const FactsTable& concrete,
                                            MemoryProbe probe) {
  return ClusterFinder(graph, forward, layers, concrete, probe).run();
}

void select_cluster_plans(std::vector<ClusterPlan>& plans, const MemoryConfig& config) {
  for (ClusterPlan& plan : plans) {
    plan.requested = 0;
    const bool wanted =
        config.level == MemoryLevel::kCompromised ||
        (config.level == MemoryLevel::kLayers && plan.strategy == RecomputeStrategy::kRecompute);
    for (ClusterOccurrence& one : plan.occurrences) {
      one.on = wanted && one.layer != kNoLayer;
      if (one.on) plan.requested = -1;
    }
  }
  for (const ClusterRequest& request : config.requests) {
    bool known = false;
    for (ClusterPlan& plan : plans) {
      if (plan.cluster != request.cluster) continue;
      if (request.strategy != RecomputeStrategy::kNone && plan.strategy != request.strategy) continue;
      known = true;
      plan.requested = request.strategy == RecomputeStrategy::kNone ? 0 : request.count;
      for (size_t i = 0; i < plan.occurrences.size(); ++i)
        plan.occurrences[i].on = plan.requested < 0 || i < static_cast<size_t>(plan.requested);
    }
    if (known) continue;
    std::string there;
    for (const ClusterPlan& plan : plans)
      there +=
          fmt::format("{}{}:{}", there.empty() ? "" : ", ", plan.cluster, static_cast<int>(plan.strategy));
    fail(ErrorCode::kInvalidArgument, "memory optimizer: expected one of {}, found {}:{}", there,
         request.cluster, static_cast<int>(request.strategy));
  }
}

std::vector<bool> nodes_run_again(const std::vector<ClusterPlan>& plans, size_t node_count) {
  std::vector<bool> nodes(node_count, false);
  for (const ClusterPlan& plan : plans) mark(plan, false, nodes);
  return nodes;
}

std::vector<bool> nodes_run_again(const ClusterPlan& plan, size_t node_count) {
  std::vector<bool> nodes(node_count, false);
  mark(plan, true, nodes);
  return nodes;
}

}  // namespace plimsoll
