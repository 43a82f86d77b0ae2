// Ensembles of trees under every truth of the bench; random ones are in tests/reference/ml.py.
#include <cmath>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Attribute reals(std::string_view name, std::span<const float> values) {
  Attribute a;
  a.name = name, a.type = AttributeType::kFloats, a.floats = values;
  return a;
}
Attribute texts(std::string_view name, std::span<const std::string_view> values) {
  Attribute a;
  a.name = name, a.type = AttributeType::kStrings, a.strings = values;
  return a;
}

// Two trees: x0 <= 1 ? (x1 > 0 ? 1 : 2) : 4, and x1 < 2 (or unknown) ? 10 : 20.
constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF",
                                       "LEAF",       "BRANCH_LT", "LEAF", "LEAF"};
constexpr float kValues[] = {1, 0, 0, 0, 0, 2, 0, 0};
constexpr float kWeights[] = {1, 2, 4, 10, 20};

OpCase& two_trees(OpCase& c) {
  return c.attr("nodes_treeids", std::vector<int64_t>{0, 0, 0, 0, 0, 1, 1, 1})
      .attr("nodes_nodeids", std::vector<int64_t>{0, 1, 2, 3, 4, 0, 1, 2})
      .attr("nodes_featureids", std::vector<int64_t>{0, 1, 0, 0, 0, 1, 0, 0})
      .attr(texts("nodes_modes", kModes))
      .attr(reals("nodes_values", kValues))
      .attr("nodes_truenodeids", std::vector<int64_t>{1, 2, 0, 0, 0, 1, 0, 0})
      .attr("nodes_falsenodeids", std::vector<int64_t>{4, 3, 0, 0, 0, 2, 0, 0})
      .attr("nodes_missing_value_tracks_true", std::vector<int64_t>{0, 0, 0, 0, 0, 1, 0, 0})
      .attr("target_treeids", std::vector<int64_t>{0, 0, 0, 1, 1})
      .attr("target_nodeids", std::vector<int64_t>{2, 3, 4, 1, 2})
      .attr("target_ids", std::vector<int64_t>{0, 0, 0, 0, 0})
      .attr(reals("target_weights", kWeights))
      .attr("n_targets", int64_t{1});
}

TEST(TreeEnsembleRegressor, RowsGoTheirWay) {
  OpCase c("TreeEnsembleRegressor", 3, "ai.onnx.ml");
  two_trees(c.input<float>({4, 2}, {1, 1, 0, 0, 2, 2, 5, 1}))
      .run()
      .expect<float>(0, {4, 1}, {11, 12, 24, 14});
}

TEST(TreeEnsembleRegressor, WhatIsUnknownGoesWhereTheNodeSays) {
  OpCase c("TreeEnsembleRegressor", 3, "ai.onnx.ml");
  two_trees(c.input<float>({3, 2}, {kNaN, 0, 0, kNaN, 1, 1})).run().expect<float>(0, {3, 1}, {14, 12, 11});
}

TEST(TreeEnsembleRegressor, ManyRowsInEveryType) {
  std::vector<float> x, expected;
  std::vector<double> wide;
  std::vector<int64_t> whole;
  for (int i = 0; i < 300; ++i) {
    const int first = i % 4, second = i % 5 - 1;
    x.insert(x.end(), {static_cast<float>(first), static_cast<float>(second)});
    // A hair above the threshold, which a float cannot tell.
    wide.insert(wide.end(), {first + (first == 1 ? 1e-12 : 0), static_cast<double>(second)});
    whole.insert(whole.end(), {first, second});
    expected.push_back((first <= 1 ? (second > 0 ? 1.f : 2.f) : 4.f) + (second < 2 ? 10.f : 20.f));
  }
  OpCase floats("TreeEnsembleRegressor", 3, "ai.onnx.ml"), integers("TreeEnsembleRegressor", 3, "ai.onnx.ml");
  two_trees(floats.input<float>({300, 2}, x)).threads(3).run().expect<float>(0, {300, 1}, expected);
  two_trees(integers.input<int64_t>({300, 2}, whole)).run().expect<float>(0, {300, 1}, expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i % 4 == 1) expected[i] = 4 + (static_cast<int>(i) % 5 - 1 < 2 ? 10.f : 20.f);
  }
  OpCase doubles("TreeEnsembleRegressor", 3, "ai.onnx.ml");
  two_trees(doubles.input<double>({300, 2}, wide)).run().expect<float>(0, {300, 1}, expected);
}

}  // namespace
}  // namespace plimsoll
