#include <cmath>

#include "ops/elementwise.h"
#include "ops/feature_rows.h"
#include "ops/score_transform.h"
#include "ops/tree_run.h"

namespace plimsoll {
namespace {

constexpr TypeSet kTreeTypes = types(ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16);

struct EnsembleAttrs {
  TreeEnsembleData data;
  TreeAggregate aggregate = TreeAggregate::kSum;
  PostTransform transform = PostTransform::kNone;
};

std::vector<double> read_numbers(AttrContext& c, std::string_view name, bool& wide) {
  const TensorData* tensor = c.tensor(name);
  if (tensor == nullptr) return {};
  wide = wide || tensor->type == ElementType::kDouble;
  return tensor_numbers(c, name, *tensor);
}

// Sets stand in the order of the nodes that test for members, each ended by a NaN.
void read_sets(AttrContext& c, RawTrees& raw, size_t wanted) {
  const std::vector<double> values = read_numbers(c, "membership_values", raw.wide);
  std::vector<double> set;
  for (const double value : values) {
    if (!std::isnan(value)) {
      set.push_back(value);
      continue;
    }
    raw.sets.push_back(set);
    set.clear();
  }
  if (!set.empty()) raw.sets.push_back(set);
  if (raw.sets.size() != wanted)
    c.reject(
        "attribute 'membership_values': expected {} sets as there are nodes that test for members, found {}",
        wanted, raw.sets.size());
}

// What a child's number means: a node, or a leaf, which stands behind the nodes.
uint32_t child_place(AttrContext& c, const char* name, int64_t id, bool leaf, size_t nodes, size_t leaves) {
  const auto count = static_cast<int64_t>(leaf ? leaves : nodes);
  if (id < 0 || id >= count)
    c.reject("attribute '{}': {} is outside [0, {}), the {}", name, id, count, leaf ? "leaves" : "nodes");
  return static_cast<uint32_t>(static_cast<size_t>(id) + (leaf ? nodes : 0));
}

struct NodeLists {
  std::span<const int64_t> features, on_true, on_false, true_leafs, false_leafs, missing;
  const TensorData* modes = nullptr;
  std::vector<double> splits;
};

NodeLists read_lists(AttrContext& c, RawTrees& raw) {
  NodeLists n{c.integers("nodes_featureids"),   c.integers("nodes_truenodeids"),
              c.integers("nodes_falsenodeids"), c.integers("nodes_trueleafs"),
              c.integers("nodes_falseleafs"),   c.integers("nodes_missing_value_tracks_true"),
              c.tensor("nodes_modes"),          read_numbers(c, "nodes_splits", raw.wide)};
  c.tensor("nodes_hitrates");
  if (n.modes == nullptr || n.modes->type != ElementType::kUint8)
    c.reject("attribute 'nodes_modes': expected a tensor of uint8");
  const size_t count = n.features.size();
  const auto expect = [&](const char* name, size_t found) {
    if (found != count)
      c.reject("attribute '{}': expected {} as there are features, found {}", name, count, found);
  };
  expect("nodes_truenodeids", n.on_true.size());
  expect("nodes_falsenodeids", n.on_false.size());
  expect("nodes_trueleafs", n.true_leafs.size());
  expect("nodes_falseleafs", n.false_leafs.size());
  expect("nodes_splits", n.splits.size());
  expect("nodes_modes", static_cast<size_t>(n.modes->view().elements()));
  if (!n.missing.empty()) expect("nodes_missing_value_tracks_true", n.missing.size());
  if (count > (1u << 28)) c.reject("more than {} nodes", 1u << 28);
  return n;
}

void read_nodes(AttrContext& c, RawTrees& raw, size_t leaves) {
  const NodeLists n = read_lists(c, raw);
  const size_t count = n.features.size();
  raw.nodes.resize(count + leaves);
  uint32_t sets = 0;
  for (size_t i = 0; i < count; ++i) {
    RawTreeNode& node = raw.nodes[i];
    const auto mode = static_cast<uint8_t>(n.modes->bytes[i]);
    if (mode > static_cast<uint8_t>(TreeMode::kMember))
      c.reject("attribute 'nodes_modes': {} is not a mode", mode);
    if (n.features[i] < 0 || n.features[i] >= (int64_t{1} << 31))
      c.reject("attribute 'nodes_featureids': {} is not a feature", n.features[i]);
    node.mode = static_cast<TreeMode>(mode);
    node.missing_tracks_true = !n.missing.empty() && n.missing[i] != 0;
    node.value = n.splits[i];
    node.feature = static_cast<uint32_t>(n.features[i]);
    node.on_true = child_place(c, "nodes_truenodeids", n.on_true[i], n.true_leafs[i] != 0, count, leaves);
    node.on_false = child_place(c, "nodes_falsenodeids", n.on_false[i], n.false_leafs[i] != 0, count, leaves);
    if (node.mode == TreeMode::kMember) node.payload = sets++;
  }
  read_sets(c, raw, sets);
  raw.leaves = static_cast<uint32_t>(leaves);
  for (size_t i = 0; i < leaves; ++i) raw.nodes[count + i].payload = static_cast<uint32_t>(i);
  for (const int64_t root : c.integers("tree_roots")) {
    if (root < 0 || root >= static_cast<int64_t>(count))
      c.reject("attribute 'tree_roots': {} is outside [0, {})", root, count);
    raw.roots.push_back(static_cast<uint32_t>(root));
  }
}

RawTrees read_ensemble(AttrContext& c, int64_t targets) {
  RawTrees raw;
  const std::vector<double> weights = read_numbers(c, "leaf_weights", raw.wide);
  const auto ids = c.integers("leaf_targetids");
  if (weights.size() != ids.size())
    c.reject("attribute 'leaf_weights': expected {} as there are target ids, found {}", ids.size(),
             weights.size());
  read_nodes(c, raw, weights.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= targets)
      c.reject("attribute 'leaf_targetids': {} is outside [0, {})", ids[i], targets);
    raw.weights.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(ids[i]), weights[i]});
  }
  return raw;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<EnsembleAttrs>();
  const int64_t aggregate = c.integer("aggregate_function", 1), transform = c.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3)
    c.reject("attribute 'aggregate_function': expected 0 to 3, found {}", aggregate);
  if (transform < 0 || transform > 4)
    c.reject("attribute 'post_transform': expected 0 to 4, found {}", transform);
  a->aggregate = static_cast<TreeAggregate>(aggregate);
  a->transform = static_cast<PostTransform>(transform);
  a->data.targets = c.integer("n_targets");
  if (a->data.targets < 1 || a->data.targets > (1 << 30))
    c.reject("attribute 'n_targets': {} is not a number of targets", a->data.targets);
  pack_trees(c, read_ensemble(c, a->data.targets), a->data);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<EnsembleAttrs>();
  c.expect_type(0, kTreeTypes);
  c.expect_rank(0, 1, 2);
  if (c.ranked(0) && c.dims(0).back().is_constant() && c.dims(0).back().value() < a.data.least_features)
    c.reject("input 0: expected at least {} features, found shape {}", a.data.least_features,
             to_string(c.dims(0)));
  c.set_output(0, c.type(0),
               std::vector<Dim>{c.ranked(0) ? row_count(c) : c.unknown("rows"), Dim(a.data.targets)});
}

const void* select(SelectContext& c) {
  return select_trees(c, c.attrs<EnsembleAttrs>().data);
}

void finish(const RunContext& c, int64_t row, const TreeSums& sums) {
  const auto& a = c.attrs<EnsembleAttrs>();
  const int64_t targets = a.data.targets;
  const int64_t trees = a.data.has_narrow ? a.data.narrow.trees.count : a.data.wide.trees.count;
  if (a.aggregate == TreeAggregate::kAverage && trees > 0) {
    for (int64_t i = 0; i < targets; ++i) sums.values[i] /= static_cast<double>(trees);
  }
  if (targets > 1)
    transform_scores(a.transform, std::span<double>(sums.values, static_cast<size_t>(targets)));
  else
    sums.values[0] =
        a.transform == PostTransform::kProbit ? probit(static_cast<float>(sums.values[0])) : sums.values[0];
  visit_float(c.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.outputs[0].as<T>() + row * targets;
    for (int64_t i = 0; i < targets; ++i) y[i] = static_cast<T>(static_cast<ComputeType<T>>(sums.values[i]));
  });
}

void run(const RunContext& c) {
  const auto& a = c.attrs<EnsembleAttrs>();
  run_trees(c, a.data, a.aggregate, finish);
}

}  // namespace

extern const OpDef op_tree_ensemble = {
    .domain = kMlDomain,
    .name = "TreeEnsemble",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
