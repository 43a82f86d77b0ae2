#include <algorithm>
#include <cstring>
#include <tuple>

#include "ops/tree_build.h"

namespace plimsoll {

std::vector<double> tensor_numbers(AttrContext& c, std::string_view name, const TensorData& tensor) {
  if (tensor.type != ElementType::kFloat && tensor.type != ElementType::kDouble &&
      tensor.type != ElementType::kFloat16)
    c.reject("attribute '{}': expected float, double or float16, found {}", name,
             element_type_name(tensor.type));
  std::vector<double> result;
  visit_float(tensor.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.view().elements(); ++i) {
      T value;
      std::memcpy(static_cast<void*>(&value), tensor.bytes.data() + static_cast<size_t>(i) * sizeof(T),
                  sizeof(T));
      if constexpr (std::is_same_v<T, double>)
        result.push_back(value);
      else
        result.push_back(static_cast<double>(static_cast<float>(value)));
    }
  });
  return result;
}

std::vector<double> read_tree_numbers(AttrContext& c, std::string_view name, std::string_view tensor_name,
                                      bool& wide) {
  const auto reals = c.reals(name);
  const TensorData* tensor = c.opset() >= 3 ? c.tensor(tensor_name) : nullptr;
  if (tensor == nullptr) return {reals.begin(), reals.end()};
  if (!reals.empty()) c.reject("expected one of the attributes '{}' and '{}', found both", name, tensor_name);
  wide = wide || tensor->type == ElementType::kDouble;
  return tensor_numbers(c, tensor_name, *tensor);
}

namespace {

TreeMode mode_of(AttrContext& c, std::string_view name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i] && i != static_cast<size_t>(TreeMode::kMember)) return static_cast<TreeMode>(i);
  }
  c.reject("attribute 'nodes_modes': '{}' is not a mode", name);
}

// Where node (tree, id) is among the attributes' nodes.
class NodePlaces {
 public:
  NodePlaces(AttrContext& c, std::span<const int64_t> trees, std::span<const int64_t> ids) : c_(c) {
    for (size_t i = 0; i < trees.size(); ++i)
      places_.emplace_back(trees[i], ids[i], static_cast<uint32_t>(i));
    std::sort(places_.begin(), places_.end());
    for (size_t i = 1; i < places_.size(); ++i) {
      const auto& [tree, id, place] = places_[i];
      if (tree == std::get<0>(places_[i - 1]) && id == std::get<1>(places_[i - 1]))
        c.reject("node {} of tree {} is there twice", id, tree);
    }
  }
  uint32_t of(int64_t tree, int64_t id, std::string_view asked_by) const {
    const auto found = std::lower_bound(places_.begin(), places_.end(), std::tuple(tree, id, 0u));
    if (found == places_.end() || std::get<0>(*found) != tree || std::get<1>(*found) != id)
      c_.reject("attribute '{}' names node {} of tree {}, which is not there", asked_by, id, tree);
    return std::get<2>(*found);
  }

 private:
  AttrContext& c_;
  std::vector<std::tuple<int64_t, int64_t, uint32_t>> places_;
};

void expect_length(AttrContext& c, std::string_view name, size_t found, size_t expected, const char* what) {
  if (found != expected)
    c.reject("attribute '{}': expected {} as there are {}, found {}", name, expected, what, found);
}

constexpr int64_t kMostFeatures = int64_t{1} << 31;

// nodes_*
NodePlaces read_nodes(AttrContext& c, RawTrees& raw) {
  const auto trees = c.integers("nodes_treeids"), ids = c.integers("nodes_nodeids"),
             features = c.integers("nodes_featureids"), on_true = c.integers("nodes_truenodeids"),
             on_false = c.integers("nodes_falsenodeids"),
             missing = c.integers("nodes_missing_value_tracks_true");
  const auto modes = c.texts("nodes_modes");
  const std::vector<double> values = read_tree_numbers(c, "nodes_values", "nodes_values_as_tensor", raw.wide);
  c.reals("nodes_hitrates");
  if (c.opset() >= 3) c.tensor("nodes_hitrates_as_tensor");
  const size_t count = trees.size();
  expect_length(c, "nodes_nodeids", ids.size(), count, "tree ids");
  expect_length(c, "nodes_featureids", features.size(), count, "tree ids");
  expect_length(c, "nodes_modes", modes.size(), count, "tree ids");
  expect_length(c, "nodes_values", values.size(), count, "tree ids");
  expect_length(c, "nodes_truenodeids", on_true.size(), count, "tree ids");
  expect_length(c, "nodes_falsenodeids", on_false.size(), count, "tree ids");
  if (!missing.empty())
    expect_length(c, "nodes_missing_value_tracks_true", missing.size(), count, "tree ids");
  if (count > (1u << 29)) c.reject("more than {} nodes", 1u << 29);

  NodePlaces places(c, trees, ids);
  raw.nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    RawTreeNode& node = raw.nodes[i];
    node.mode = mode_of(c, modes[i]);
    if (node.mode == TreeMode::kLeaf) {
      node.payload = raw.leaves++;
      continue;
    }
    if (features[i] < 0 || features[i] >= kMostFeatures)
      c.reject("attribute 'nodes_featureids': {} is not a feature", features[i]);
    node.feature = static_cast<uint32_t>(features[i]);
    node.value = values[i];
    node.missing_tracks_true = !missing.empty() && missing[i] != 0;
    node.on_true = places.of(trees[i], on_true[i], "nodes_truenodeids");
    node.on_false = places.of(trees[i], on_false[i], "nodes_falsenodeids");
  }
  return places;
}

// The first node of every tree is its root; trees are in the order of their first nodes.
void read_roots(AttrContext& c, RawTrees& raw) {
  const auto trees = c.integers("nodes_treeids");
  std::vector<std::pair<int64_t, uint32_t>> first;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (i == 0 || trees[i] != trees[i - 1]) first.emplace_back(trees[i], static_cast<uint32_t>(i));
  }
  std::sort(first.begin(), first.end());
  for (size_t i = 0; i < first.size(); ++i) {
    if (i == 0 || first[i].first != first[i - 1].first) raw.roots.push_back(first[i].second);
  }
  std::sort(raw.roots.begin(), raw.roots.end());
}

}  // namespace

RawTrees read_trees(AttrContext& c, const std::string& prefix, int64_t targets) {
  // The context remembers names as views.
  const auto name = [&](const char* rest) { return c.arena().copy(std::string_view(prefix + rest)); };
  RawTrees raw;
  const NodePlaces places = read_nodes(c, raw);
  read_roots(c, raw);
  const auto trees = c.integers(name("_treeids")), ids = c.integers(name("_nodeids")),
             target_ids = c.integers(name("_ids"));
  const std::vector<double> weights =
      read_tree_numbers(c, name("_weights"), name("_weights_as_tensor"), raw.wide);
  expect_length(c, name("_nodeids"), ids.size(), trees.size(), "tree ids of weights");
  expect_length(c, name("_ids"), target_ids.size(), trees.size(), "tree ids of weights");
  expect_length(c, name("_weights"), weights.size(), trees.size(), "tree ids of weights");
  for (size_t i = 0; i < trees.size(); ++i) {
    if (target_ids[i] < 0 || target_ids[i] >= targets)
      c.reject("attribute '{}': {} is outside [0, {})", name("_ids"), target_ids[i], targets);
    const RawTreeNode& node = raw.nodes[places.of(trees[i], ids[i], name("_nodeids"))];
    // Old converters give weights to inner nodes too; nobody ever reaches them.
    if (node.mode != TreeMode::kLeaf) continue;
    raw.weights.push_back({node.payload, static_cast<uint32_t>(target_ids[i]), weights[i]});
  }
  return raw;
}

}  // namespace plimsoll
