#include <algorithm>

#include "ops/feature_rows.h"
#include "ops/score_transform.h"
#include "ops/tree_run.h"

namespace plimsoll {
namespace {

struct ClassifierAttrs {
  TreeEnsembleData data;
  ClassLabels labels;
  PostTransform transform = PostTransform::kNone;
  std::span<const double> base;
  // Of two classes only one has weights: a score that tells them apart.
  bool one_score = false;
  bool all_positive = true;  // that score is a probability
};

void read_base(AttrContext& c, ClassifierAttrs& a) {
  bool wide = false;
  const std::vector<double> base = read_tree_numbers(c, "base_values", "base_values_as_tensor", wide);
  const size_t classes = a.labels.size();
  const bool fits = base.empty() || base.size() == classes || (classes == 2 && base.size() == 1);
  if (!fits)
    c.reject("attribute 'base_values': expected {} as there are classes, or none, found {}", classes,
             base.size());
  a.base = c.arena().copy(base);
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<ClassifierAttrs>();
  a->labels = read_labels(c, "classlabels_strings", "classlabels_int64s");
  a->transform = read_post_transform(c);
  a->data.targets = static_cast<int64_t>(a->labels.size());
  if (a->labels.size() == 0) c.reject("expected labels of classes, found none");
  read_base(c, *a);
  const RawTrees raw = read_trees(c, "class", a->data.targets);
  a->one_score = a->labels.size() == 2 && !raw.weights.empty();
  for (const RawTrees::Weight& weight : raw.weights) {
    a->one_score = a->one_score && weight.target == raw.weights[0].target;
    a->all_positive = a->all_positive && !(weight.value < 0);
  }
  pack_trees(c, raw, a->data);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  expect_feature_rows(c, -1);
  if (c.ranked(0) && c.dims(0).back().is_constant() && c.dims(0).back().value() < a.data.least_features)
    c.reject("input 0: expected at least {} features, found shape {}", a.data.least_features,
             to_string(c.dims(0)));
  const Dim rows = c.ranked(0) ? row_count(c) : c.unknown("rows");
  c.set_output(0, a.labels.type(), std::vector<Dim>{rows});
  c.set_output(1, ElementType::kFloat, std::vector<Dim>{rows, Dim(a.data.targets)});
}

const void* select(SelectContext& c) {
  return select_trees(c, c.attrs<ClassifierAttrs>().data);
}

void write_scores(const RunContext& c, int64_t row, std::span<float> scores) {
  const auto& a = c.attrs<ClassifierAttrs>();
  if (!c.has_output(1)) return;
  transform_scores(a.transform, scores);
  std::copy(scores.begin(), scores.end(), c.outputs[1].as<float>() + row * a.data.targets);
}

// One score for two classes, as ONNX Runtime has it: class 1 above 0.5 if no weight is negative, above 0
// otherwise. Weights of class 0 become the scores of both; weights of class 1 leave class 0 at nothing. Two
// base values belong to the two classes.
size_t finish_one_score(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<ClassifierAttrs>();
  const bool of_second = a.data.weights.targets[0] == 1;
  double score = sums.values[of_second ? 1 : 0];
  if (a.base.size() == 2)
    score += a.base[of_second ? 1 : 0];
  else if (a.base.size() == 1 && !of_second)
    score += a.base[0];
  const size_t label = score > (a.all_positive ? 0.5 : 0.0) ? 1 : 0;
  if (!c.has_output(1)) return label;
  float pair[2] = {0, static_cast<float>(score)};
  if (!of_second && a.base.size() < 2) {
    write_both_classes(a.transform, static_cast<float>(score), a.all_positive, pair);
    std::copy_n(pair, 2, c.outputs[1].as<float>() + row * 2);
    return label;
  }
  if (a.base.size() == 2) pair[0] = -pair[1];
  if (!of_second) std::swap(pair[0], pair[1]), pair[1] = 0;
  write_scores(c, row, pair);
  return label;
}

// A single class: 1 where its score is positive, if labels are numbers.
void finish_one_class(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<ClassifierAttrs>();
  const auto score = static_cast<float>(sums.values[0] + (a.base.empty() ? 0 : a.base[0]));
  if (c.has_output(1)) c.outputs[1].as<float>()[row] = transform_single(a.transform, score);
  if (!c.has_output(0)) return;
  if (a.labels.strings())
    a.labels.write(c.outputs[0], row, 0);
  else
    c.outputs[0].as<int64_t>()[row] = score > 0 ? 1 : 0;
}

// The class with the largest score; classes that no tree and no base value spoke of do not count.
size_t finish_classes(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<ClassifierAttrs>();
  const size_t classes = a.labels.size();
  size_t best = 0;
  bool found = false;
  float* scores = c.has_output(1) ? c.outputs[1].as<float>() + row * a.data.targets : nullptr;
  for (size_t i = 0; i < classes; ++i) {
    const bool based = a.base.size() > i;
    if (based) sums.values[i] += a.base[i];
    if (scores != nullptr) scores[i] = static_cast<float>(sums.values[i]);
    if (!based && sums.seen[i] == 0) continue;
    if (!found || sums.values[i] > sums.values[best]) best = i;
    found = true;
  }
  if (scores != nullptr) transform_scores(a.transform, {scores, classes});
  return best;
}

void finish(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<ClassifierAttrs>();
  if (a.labels.size() == 1) return finish_one_class(c, row, sums);
  const size_t label = a.one_score ? finish_one_score(c, row, sums) : finish_classes(c, row, sums);
  if (c.has_output(0)) a.labels.write(c.outputs[0], row, label);
}

void run(const RunContext& c) {
  run_trees(c, c.attrs<ClassifierAttrs>().data, TreeAggregate::kSum, finish);
}

}  // namespace

extern const OpDef op_tree_ensemble_classifier = {
    .domain = kMlDomain,
    .name = "TreeEnsembleClassifier",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
