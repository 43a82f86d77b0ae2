// One node, run by itself on tensors written as data, under every truth of op_bench.h.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/bump_arena.h"
#include "ops/invoke.h"
#include "ops/op_bench.h"
#include "ops/registry.h"

namespace plimsoll {

// OpCase("Relu", 14).input<float>({2, 2}, {-1, 0, 1, 2}).run().expect<float>(0, {2, 2}, {0, 0, 1, 2});
class OpCase {
 public:
  OpCase(std::string op, int opset, std::string domain = "")
      : budget_("test", 0), arena_(budget_), dims_(arena_), graph_(arena_, dims_), op_(op), domain_(domain) {
    imports_[0] = {arena_.copy(domain_), opset};
    graph_.opsets = imports_;
  }
  template <typename T>
  OpCase& input(const std::vector<int64_t>& dims, const std::vector<T>& data) {
    TensorView view{nullptr, element_type_of<T>(), false, arena_.copy(dims)};
    T* memory = static_cast<T*>(arena_.allocate(data.size() * sizeof(T) + 64, 64));
    for (size_t i = 0; i < data.size(); ++i) memory[i] = data[i];
    view.data = reinterpret_cast<std::byte*>(memory);
    views_.push_back(view);
    edges_.push_back(graph_.add_edge("input" + std::to_string(edges_.size())));
    return *this;
  }
  OpCase& absent() {
    views_.push_back({});
    edges_.push_back(nullptr);
    return *this;
  }
  OpCase& attr(Attribute attribute) {
    attributes_.push_back(attribute);
    return *this;
  }
  OpCase& attr(std::string_view name, int64_t value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInt, a.i = value;
    return attr(a);
  }
  OpCase& attr(std::string_view name, float value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kFloat, a.f = value;
    return attr(a);
  }
  OpCase& attr(std::string_view name, const char* value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kString, a.s = value;
    return attr(a);
  }
  OpCase& attr(std::string_view name, const std::vector<int64_t>& values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInts, a.ints = arena_.copy(values);
    return attr(a);
  }
  OpCase& attr(std::string_view name, const std::vector<float>& values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kFloats, a.floats = arena_.copy(values);
    return attr(a);
  }
  OpCase& outputs(size_t count) {
    output_count_ = count;
    return *this;
  }
  // One of the outputs is not asked for.
  OpCase& without_output(size_t i) {
    unwanted_.push_back(i);
    return *this;
  }
  OpCase& threads(int count) {
    threads_ = count;
    return *this;
  }
  OpCase& run() {
    run_alone();
    outcomes_ = run_bench(*node_, views_, results_, threads_);
    return *this;
  }
  // Once, and not under the truths: for operators that refuse some symbolic dimensions.
  OpCase& run_alone() {
    std::vector<Edge*> out;
    for (size_t i = 0; i < output_count_; ++i) out.push_back(graph_.add_edge("output" + std::to_string(i)));
    for (size_t i : unwanted_) out.at(i) = nullptr;
    node_ = graph_.add_node(domain_, op_, "node", edges_, out, attributes_);
    resolve(*node_, arena_);
    results_ = invoke(*node_, views_, arena_, dims_, threads_);
    return *this;
  }
  Graph& graph() { return graph_; }
  const TensorView& result(size_t i = 0) const { return results_[i]; }
  template <typename T>
  OpCase& expect(size_t i, const std::vector<int64_t>& dims, const std::vector<T>& data,
                 double tolerance = 1e-5) {
    check(i, results_.at(i), dims, data, tolerance);
    for (const Outcome& outcome : outcomes_) {
      if (testing::Test::HasFailure() || results_[i].type == ElementType::kString) break;
      SCOPED_TRACE(outcome.truth);
      TensorView view = results_[i];
      view.data = const_cast<std::byte*>(outcome.outputs[i].data());
      check(i, view, dims, data, tolerance);
    }
    return *this;
  }

 private:
  template <typename T>
  static void check(size_t i, const TensorView& view, const std::vector<int64_t>& dims,
                    const std::vector<T>& data, double tolerance) {
    SCOPED_TRACE(testing::Message() << "output " << i);
    EXPECT_EQ(view.type, element_type_of<T>());
    EXPECT_EQ(std::vector<int64_t>(view.dims.begin(), view.dims.end()), dims);
    ASSERT_EQ(view.elements(), static_cast<int64_t>(data.size()));
    for (size_t k = 0; k < data.size(); ++k) {
      if constexpr (std::is_same_v<T, StringRef>) {
        EXPECT_EQ(view.as<T>()[k].view(), data[k].view()) << "element " << k;
      } else if constexpr (std::is_integral_v<T>) {
        EXPECT_EQ(view.as<T>()[k], data[k]) << "element " << k;
      } else {
        EXPECT_NEAR(static_cast<float>(view.as<T>()[k]), static_cast<float>(data[k]), tolerance)
            << "element " << k;
      }
    }
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph graph_;
  OpsetImport imports_[1];
  std::string op_, domain_;
  std::vector<TensorView> views_;
  std::vector<Edge*> edges_;
  std::vector<Attribute> attributes_;
  size_t output_count_ = 1;
  std::vector<size_t> unwanted_;
  int threads_ = 1;
  Node* node_ = nullptr;
  std::vector<TensorView> results_;
  std::vector<Outcome> outcomes_;  // one per instruction set
};

}  // namespace plimsoll
