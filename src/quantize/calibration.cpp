#include "quantize/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "graph/builder.h"
#include "graph/op_def.h"

namespace plimsoll {

void ObservedRange::merge(std::span<const float> numbers) {
  low = std::min(low, numbers[0]);
  high = std::max(high, numbers[1]);
  nearest = std::min(nearest, numbers[2]);
}

void ObservedRange::average(std::span<const float> numbers, double share) {
  if (numbers[0] > numbers[1]) return;
  if (is_empty()) return merge(numbers);
  low += static_cast<float>(share * (numbers[0] - low));
  high += static_cast<float>(share * (numbers[1] - high));
}

float Histogram::edge(size_t i) const {
  const double width = (static_cast<double>(high) - low) / static_cast<double>(counts.size());
  return i == counts.size() ? high : static_cast<float>(low + static_cast<double>(i) * width);
}

namespace {

// Values by name, as sinks need them: each sink right behind the node that makes its value, so that no value
// lives longer for it.
class Observing {
 public:
  Observing(Graph& graph, std::span<const std::string> values) : graph_(graph) {
    std::unordered_map<std::string_view, size_t> wanted;
    for (size_t i = 0; i < values.size(); ++i) wanted[values[i]] = i;
    sinks_.resize(values.size());
    const auto look = [&](Edge* edge) {
      if (edge == nullptr) return;
      const auto found = wanted.find(edge->name);
      if (found != wanted.end() && sinks_[found->second].value == nullptr) sinks_[found->second].value = edge;
    };
    for (Edge* input : graph.inputs) look(input);
    for (Node* node : graph.nodes) {
      for (Edge* output : node->outputs) look(output);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (sinks_[i].value == nullptr)
        fail(ErrorCode::kInvalidArgument, "there is no value '{}' in the model's graph", values[i]);
    }
  }

  // sink(i, value) adds nodes and returns what they make of the value, which becomes an output.
  template <typename F>
  void observe(F&& sink) {
    const std::vector<Node*> nodes(graph_.nodes.begin(), graph_.nodes.end());
    std::unordered_map<const Node*, std::vector<size_t>> after;
    graph_.nodes.clear();
    const auto add = [&](size_t i) { sinks_[i].made = sink(i, sinks_[i].value); };
    for (size_t i = 0; i < sinks_.size(); ++i) {
      if (sinks_[i].value->producer == nullptr) {
        add(i);
      } else {
        after[sinks_[i].value->producer].push_back(i);
      }
    }
    for (Node* node : nodes) {
      graph_.nodes.push_back(node);
      for (size_t i : after[node]) add(i);
    }
    graph_.outputs.clear();
    for (const Sink& made : sinks_) graph_.outputs.push_back(made.made);
  }

  // The same with one operator, of whose numbers a single output is made.
  template <typename F>
  void observe(std::string_view op_type, F&& attributes_of) {
    observe([&](size_t i, Edge* value) {
      Edge* numbers = graph_.add_edge(fmt::format("{}/observed_{}", value->name, i));
      Edge *const inputs[] = {value}, *const outputs[] = {numbers};
      graph_.add_node(kPlimsollDomain, op_type, "", inputs, outputs, attributes_of(i));
      return numbers;
    });
    const std::vector<Edge*> all(graph_.outputs.begin(), graph_.outputs.end());
    Edge* joined = graph_.add_edge("observations");
    Edge* const outputs[] = {joined};
    graph_.add_node("", "Concat", "join_observations", all, outputs,
                    AttributeList(graph_.arena()).set("axis", int64_t{0}).list());
    graph_.outputs.clear();
    graph_.outputs.push_back(joined);
  }

 private:
  struct Sink {
    Edge *value = nullptr, *made = nullptr;
  };
  Graph& graph_;
  std::vector<Sink> sinks_;
};

}  // namespace

void observe_products(Graph& graph, std::span<const ObservedProduct> values) {
  constexpr int kOpset = 13;
  std::vector<std::string> names;
  for (const ObservedProduct& product : values) names.push_back(product.value);
  GraphBuilder builder(graph, "observed_product");
  Observing(graph, names).observe([&](size_t i, Edge* value) {
    const int64_t rank[] = {2}, shape[] = {-1, values[i].k};
    const auto add = [&](std::string_view op_type, std::initializer_list<Edge*> inputs,
                         const AttributeList& attributes) {
      Edge* made = builder.op(op_type, inputs, attributes);
      made->producer->opset = kOpset;
      return made;
    };
    const auto list = [&] { return AttributeList(graph.arena()); };
    Edge* wide = add("Cast", {value}, list().set("to", static_cast<int64_t>(ElementType::kFloat)));
    Edge* rows =
        add("Reshape", {wide, builder.constant("rows", rank, std::span<const int64_t>(shape))}, list());
    return add("Gemm", {rows, rows}, list().set("transA", int64_t{1}));
  });
}

void observe_ranges(Graph& graph, std::span<const std::string> values) {
  Observing(graph, values).observe("ObserveRange", [](size_t) { return std::span<const Attribute>(); });
}

void observe_histograms(Graph& graph, std::span<const std::string> values,
                        std::span<const Histogram> histograms) {
  Observing(graph, values).observe("ObserveHistogram", [&](size_t i) {
    const Histogram& h = histograms[i];
    AttributeList list(graph.arena());
    list.set("bins", static_cast<int64_t>(h.counts.size())).set("low", h.low).set("high", h.high);
    list.set("absolute", int64_t{h.absolute});
    return std::span<const Attribute>(graph.arena().copy(list.list()));
  });
}

namespace {

// No part of it is nothing, so that logarithms exist. Empty if all of it is.
std::vector<double> smoothed(std::span<const double> p) {
  constexpr double kLittle = 1e-4;
  const auto zeros = static_cast<double>(std::count(p.begin(), p.end(), 0.0));
  const double others = static_cast<double>(p.size()) - zeros;
  if (others == 0) return {};
  std::vector<double> result(p.begin(), p.end());
  for (double& x : result) x += x == 0 ? kLittle : -kLittle * zeros / others;
  return result;
}

double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  if (p.empty() || q.empty()) return INFINITY;
  const double p_sum = std::accumulate(p.begin(), p.end(), 0.0),
               q_sum = std::accumulate(q.begin(), q.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] <= 0 || q[i] <= 0) return INFINITY;
    sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  }
  return sum;
}

// What is left of the bins [first, last) when they share so many numbers.
double loss(const std::vector<int64_t>& counts, size_t first, size_t last, size_t numbers) {
  const size_t size = last - first, merged = size / numbers;
  std::vector<double> p(counts.begin() + static_cast<ptrdiff_t>(first),
                        counts.begin() + static_cast<ptrdiff_t>(last));
  const std::vector<double> inside = p;
  p.front() += static_cast<double>(
      std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(first), int64_t{0}));
  p.back() += static_cast<double>(
      std::accumulate(counts.begin() + static_cast<ptrdiff_t>(last), counts.end(), int64_t{0}));
  std::vector<double> q(size, 0.0);
  for (size_t n = 0; n < numbers; ++n) {
    const size_t from = n * merged, to = from + merged, end = n + 1 == numbers ? size : to;
    const double sum = std::accumulate(inside.begin() + static_cast<ptrdiff_t>(from),
                                       inside.begin() + static_cast<ptrdiff_t>(end), 0.0);
    const auto used = std::count_if(p.begin() + static_cast<ptrdiff_t>(from),
                                    p.begin() + static_cast<ptrdiff_t>(to), [](double x) { return x != 0; });
    // Whole counts, as ONNX Runtime's tool has them.
    for (size_t i = from; i < to && used != 0; ++i) q[i] = std::floor(sum / static_cast<double>(used));
  }
  return divergence(smoothed(p), smoothed(q));
}

RealRange held(RealRange range, const ObservedRange& observed) {
  return {std::max(range.low, observed.low), std::min(range.high, observed.high)};
}

}  // namespace

RealRange entropy_range(const Histogram& h, const ObservedRange& observed, int quantized_bins) {
  const size_t bins = h.counts.size(), middle = bins / 2, numbers = static_cast<size_t>(quantized_bins);
  double best = INFINITY;
  RealRange found = {h.low, h.high};
  bool is_first = true;
  for (size_t half = numbers / 2; half <= middle; ++half) {
    const size_t first = middle - half, last = std::min(middle + half + 1, bins);
    const double lost = loss(h.counts, first, last, numbers);
    if (!is_first && lost >= best) continue;
    is_first = false;
    best = lost;
    found = {h.edge(first), h.edge(last)};
  }
  return held(found, observed);
}

RealRange percentile_range(const Histogram& h, const ObservedRange& observed, double percentile) {
  const auto total = static_cast<double>(std::accumulate(h.counts.begin(), h.counts.end(), int64_t{0}));
  // The first bin up to which so large a part of all is.
  const auto edge_at = [&](double part) {
    double sum = 0;
    size_t i = 0;
    for (; i < h.counts.size(); ++i) {
      sum += static_cast<double>(h.counts[i]) / total;
      if (sum >= part) break;
    }
    return h.edge(std::min(i, h.counts.size()));
  };
  if (h.absolute) {
    const float at = edge_at(percentile / 100);
    return held({-at, at}, observed);
  }
  const double cut = (100 - percentile) / 200;
  return held({edge_at(cut), edge_at(1 - cut)}, observed);
}

float deviation(const Histogram& h) {
  double total = 0, sum = 0, squares = 0;
  for (size_t i = 0; i < h.counts.size(); ++i) {
    const double value = (static_cast<double>(h.edge(i)) + h.edge(i + 1)) / 2,
                 count = static_cast<double>(h.counts[i]);
    total += count;
    sum += count * value;
    squares += count * value * value;
  }
  if (total == 0) return 0;
  return static_cast<float>(std::sqrt(std::max(0.0, squares / total - sum / total * (sum / total))));
}

}  // namespace plimsoll
