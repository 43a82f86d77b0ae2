#include "ops/feature_rows.h"
#include "ops/score_transform.h"
#include "ops/tree_run.h"

namespace plimsoll {
namespace {

struct RegressorAttrs {
  TreeEnsembleData data;
  TreeAggregate aggregate = TreeAggregate::kSum;
  PostTransform transform = PostTransform::kNone;
  std::span<const double> base;  // by target, or none
};

TreeAggregate read_aggregate(AttrContext& c) {
  const std::string_view name = c.text("aggregate_function", "SUM");
  if (name == "AVERAGE") return TreeAggregate::kAverage;
  if (name == "MIN") return TreeAggregate::kMin;
  if (name == "MAX") return TreeAggregate::kMax;
  if (name != "SUM")
    c.reject("attribute 'aggregate_function': expected AVERAGE, SUM, MIN or MAX, found '{}'", name);
  return TreeAggregate::kSum;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<RegressorAttrs>();
  a->aggregate = read_aggregate(c);
  a->transform = read_post_transform(c);
  a->data.targets = c.integer("n_targets");
  if (a->data.targets < 1 || a->data.targets > (1 << 30))
    c.reject("attribute 'n_targets': {} is not a number of targets", a->data.targets);
  bool wide = false;
  const std::vector<double> base = read_tree_numbers(c, "base_values", "base_values_as_tensor", wide);
  if (!base.empty() && static_cast<int64_t>(base.size()) != a->data.targets)
    c.reject("attribute 'base_values': expected {} as there are targets, or none, found {}", a->data.targets,
             base.size());
  a->base = c.arena().copy(base);
  pack_trees(c, read_trees(c, "target", a->data.targets), a->data);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RegressorAttrs>();
  expect_feature_rows(c, -1);
  if (c.ranked(0) && c.dims(0).back().is_constant() && c.dims(0).back().value() < a.data.least_features)
    c.reject("input 0: expected at least {} features, found shape {}", a.data.least_features,
             to_string(c.dims(0)));
  c.set_output(0, ElementType::kFloat,
               std::vector<Dim>{c.ranked(0) ? row_count(c) : c.unknown("rows"), Dim(a.data.targets)});
}

const void* select(SelectContext& c) {
  return select_trees(c, c.attrs<RegressorAttrs>().data);
}

void finish(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<RegressorAttrs>();
  const int64_t targets = a.data.targets;
  const int64_t trees = a.data.has_narrow ? a.data.narrow.trees.count : a.data.wide.trees.count;
  float* y = c.outputs[0].as<float>() + row * targets;
  for (int64_t i = 0; i < targets; ++i) {
    double value = sums.values[i];
    if (a.aggregate == TreeAggregate::kAverage && trees > 0) value /= static_cast<double>(trees);
    y[i] = static_cast<float>(value + (a.base.empty() ? 0 : a.base[static_cast<size_t>(i)]));
  }
  if (targets > 1)
    transform_scores(a.transform, {y, static_cast<size_t>(targets)});
  else
    y[0] = transform_single(a.transform, y[0]);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<RegressorAttrs>();
  run_trees(c, a.data, a.aggregate, finish);
}

}  // namespace

extern const OpDef op_tree_ensemble_regressor = {
    .domain = kMlDomain,
    .name = "TreeEnsembleRegressor",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
