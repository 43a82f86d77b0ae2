// Small models written as code, run node by node before and after a rewrite.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "graph/infer.h"
#include "memory/bump_arena.h"
#include "ops/invoke.h"
#include "ops/registry.h"
#include "optimize/check_graph.h"
#include "optimize/editor.h"
#include "optimize/pipeline.h"

namespace plimsoll {

class GraphCase {
 public:
  explicit GraphCase(int opset = 17)
      : budget_("test", 0), arena_(budget_), dims_(arena_), root_(arena_, dims_) {
    imports_[0] = {"", opset};
    root_.opsets = imports_;
  }
  Graph& root() { return root_; }
  BumpArena& arena() { return arena_; }
  AttributeList attrs() { return AttributeList(arena_); }

  // Dimensions below zero are symbols: -1 is s1, -2 is s2. They count 5, 6, ... when it runs.
  Edge* input(const std::vector<int64_t>& dims, ElementType type = ElementType::kFloat) {
    Edge* edge = root_.add_edge(fmt::format("input{}", root_.inputs.size()));
    std::vector<Dim> symbolic;
    std::vector<int64_t> concrete;
    for (int64_t d : dims) {
      symbolic.push_back(d < 0 ? dims_.symbol(fmt::format("s{}", -d)) : Dim(d));
      concrete.push_back(d < 0 ? 4 - d : d);
    }
    edge->facts.type = {ValueKind::kTensor,    type,   ElementType::kUndefined, true,
                        arena_.copy(symbolic), nullptr};
    root_.inputs.push_back(edge);
    shapes_[edge] = concrete;
    return edge;
  }
  // Values made from a fixed sequence between -2 and 2, never 0.
  std::vector<float> sequence(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      state_ = state_ * 1664525u + 1013904223u;
      values.push_back((static_cast<float>(state_ >> 8) + 0.5f) / static_cast<float>(1 << 22) - 2.0f);
    }
    return values;
  }
  template <typename T>
  Edge* constant(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    TensorData tensor;
    tensor.type = element_type_of<T>();
    tensor.dims = arena_.copy(dims);
    std::span<T> copy = arena_.array<T>(values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    tensor.bytes = std::as_bytes(std::span<const T>(copy));
    return root_.add_constant(fmt::format("constant{}", root_.edge_count()), tensor);
  }
  Edge* scalar(float value) { return constant<float>({}, {value}); }
  Edge* weights(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    return constant<float>(dims, sequence(count));
  }
  // Between 1 and 2, as variances are.
  Edge* positive(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    std::vector<float> values = sequence(count);
    for (float& v : values) v = 1.5f + v / 4;
    return constant<float>(dims, values);
  }
  std::vector<Edge*> nodes(const std::string& op, const std::vector<Edge*>& inputs, size_t outputs,
                           const AttributeList& attributes, const std::string& domain = "") {
    std::vector<Edge*> out;
    for (size_t i = 0; i < outputs; ++i)
      out.push_back(root_.add_edge(fmt::format("edge{}", root_.edge_count())));
    root_.add_node(domain, op, "", inputs, out, attributes.list());
    return out;
  }
  Edge* node(const std::string& op, const std::vector<Edge*>& inputs, const AttributeList& attributes,
             const std::string& domain = "") {
    return nodes(op, inputs, 1, attributes, domain)[0];
  }
  Edge* node(const std::string& op, const std::vector<Edge*>& inputs) { return node(op, inputs, attrs()); }
  Edge* transpose(Edge* x, const std::vector<int64_t>& perm) {
    return node("Transpose", {x}, attrs().set("perm", std::span<const int64_t>(perm)));
  }
  void output(Edge* edge) { root_.outputs.push_back(edge); }
  void ready() {
    root_.sort();
    resolve(root_);
    infer_graph(root_);
  }

  int count(const std::string& op, const std::string& domain = "") {
    int found = 0;
    root_.for_each_graph([&](Graph& graph) {
      for (Node* node : graph.nodes) found += node->op_type == op && node->domain == domain;
    });
    return found;
  }
  int fused(const std::string& op) { return count(op, std::string(kPlimsollDomain)); }
  int node_count() { return static_cast<int>(root_.nodes.size()); }
  Node* find(const std::string& op) {
    for (Node* node : root_.nodes) {
      if (node->op_type == op) return node;
    }
    return nullptr;
  }

  // The outputs for fixed inputs, as floats.
  std::vector<std::vector<float>> run() {
    std::map<const Edge*, TensorView> values;
    state_ = 7;
    for (Edge* edge : root_.inputs) values[edge] = make_input(*edge);
    for (Edge* edge : root_.initializers) values[edge] = aligned(*edge->constant);
    for (Node* node : root_.nodes) {
      std::vector<TensorView> inputs;
      for (Edge* edge : node->inputs) inputs.push_back(edge == nullptr ? TensorView{} : values.at(edge));
      const std::vector<TensorView> outputs = invoke(*node, inputs, arena_, dims_);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (node->outputs[i] != nullptr) values[node->outputs[i]] = outputs[i];
      }
    }
    std::vector<std::vector<float>> results;
    for (Edge* edge : root_.outputs) results.push_back(as_floats(values.at(edge)));
    return results;
  }
  // Applies a pass; the answers must stay the same, and so must the outputs' facts.
  bool apply(bool (*pass)(Graph&, const OptimizeOptions&), const OptimizeOptions& options = {}) {
    ready();
    const auto before = run();
    const std::vector<std::string> types = output_types();
    PassChecker checker(root_);
    const bool changed = pass(root_, options);
    checker.check("the pass");
    infer_graph(root_);
    EXPECT_EQ(output_types(), types);
    expect_near(run(), before);
    return changed;
  }
  void optimize_all(int level = 3) {
    ready();
    const auto before = run();
    OptimizeOptions options;
    options.level = level;
    options.check_passes = true;
    optimize(root_, options);
    infer_graph(root_);
    expect_near(run(), before);
  }

 private:
  std::vector<std::string> output_types() {
    std::vector<std::string> types;
    for (Edge* edge : root_.outputs) types.push_back(std::string(edge->name) + to_string(edge->facts.type));
    return types;
  }
  static void expect_near(const std::vector<std::vector<float>>& found,
                          const std::vector<std::vector<float>>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].size(), wanted[i].size());
      for (size_t k = 0; k < found[i].size(); ++k)
        ASSERT_NEAR(found[i][k], wanted[i][k], 1e-4 + 1e-4 * std::abs(wanted[i][k]))
            << "output " << i << ", element " << k;
    }
  }
  TensorView make_input(const Edge& edge) {
    TensorView view{nullptr, edge.facts.type.type, false, arena_.copy(shapes_.at(&edge))};
    const std::vector<float> values = sequence(view.elements());
    view.data = static_cast<std::byte*>(arena_.allocate(static_cast<size_t>(view.bytes()) + 64, 64));
    for (size_t i = 0; i < values.size(); ++i) {
      if (view.type == ElementType::kFloat) view.as<float>()[i] = values[i];
      if (view.type == ElementType::kInt64) view.as<int64_t>()[i] = static_cast<int64_t>(i % 3);
    }
    return view;
  }
  TensorView aligned(const TensorView& view) {
    TensorView copy = view;
    const auto size = static_cast<size_t>(view.bytes());
    copy.data = static_cast<std::byte*>(arena_.allocate(size + 64, 64));
    if (size > 0) std::memcpy(copy.data, view.data, size);
    return copy;
  }
  static std::vector<float> as_floats(const TensorView& view) {
    std::vector<float> values;
    visit_numeric(view.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < view.elements(); ++i) values.push_back(static_cast<float>(view.as<T>()[i]));
    });
    return values;
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph root_;
  OpsetImport imports_[1];
  std::map<const Edge*, std::vector<int64_t>> shapes_;
  uint32_t state_ = 1;
};

}  // namespace plimsoll
