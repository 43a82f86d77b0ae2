#include "ops/tree_build.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace plimsoll {
namespace {

constexpr uint32_t kNowhere = ~0u;

// The nodes that the roots reach, children before parents.
std::vector<uint32_t> order_of(AttrContext& c, const RawTrees& raw) {
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> states(raw.nodes.size(), State::kNew);
  std::vector<uint32_t> order, stack;
  for (const uint32_t root : raw.roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      const RawTreeNode& node = raw.nodes[at];
      if (states[at] != State::kNew) {
        stack.pop_back();
        if (states[at] == State::kOpen) order.push_back(at);
        states[at] = State::kDone;
        continue;
      }
      states[at] = State::kOpen;
      if (node.mode == TreeMode::kLeaf) continue;
      for (const uint32_t child : {node.on_true, node.on_false}) {
        if (states[child] == State::kOpen) c.reject("the trees have a cycle through node {}", child);
        if (states[child] == State::kNew) stack.push_back(child);
      }
    }
  }
  return order;
}

// A node as the kernel has it: right if x > threshold, or by another rule.
template <typename T>
struct Canonical {
  T threshold;
  uint32_t rule;
  bool swapped;  // true leads right
};

template <typename T>
Canonical<T> canonical(const RawTreeNode& node) {
  using kernels::TreeRule;
  const T value = static_cast<T>(node.value);
  const T never = std::numeric_limits<T>::quiet_NaN();  // everything differs from it
  const T below = std::nextafter(value, -std::numeric_limits<T>::infinity());
  const uint32_t nan_left = 0, nan_right = TreeRule::kNanRight;
  const uint32_t nan_false = node.missing_tracks_true ? nan_left : nan_right;
  const uint32_t nan_false_swapped = node.missing_tracks_true ? nan_right : nan_left;
  const bool least = value == -std::numeric_limits<T>::infinity();
  const bool ordered = node.mode == TreeMode::kLeq || node.mode == TreeMode::kLt ||
                       node.mode == TreeMode::kGte || node.mode == TreeMode::kGt;
  if (ordered && std::isnan(value)) return {never, TreeRule::kDiffers | nan_false, false};
  switch (node.mode) {
    case TreeMode::kLeq:
      return {value, nan_false, false};
    case TreeMode::kLt:
      if (least) return {never, TreeRule::kDiffers | nan_false, false};
      return {below, nan_false, false};
    case TreeMode::kGt:
      return {value, nan_false_swapped, true};
    case TreeMode::kGte:
      if (least) return {never, TreeRule::kDiffers | nan_false_swapped, true};
      return {below, nan_false_swapped, true};
    case TreeMode::kEq:
      return {value, TreeRule::kDiffers | nan_false, false};
    case TreeMode::kNeq:  // NaN differs from everything
      return {value, TreeRule::kDiffers | nan_right, true};
    default:
      return {never, TreeRule::kNotMember | nan_false | (node.payload << TreeRule::kSetShift), false};
  }
}

// Places nodes breadth first, so that children are neighbours. A child that has a place already is reached by
// a node that always leads there.
template <typename T>
class Packer {
 public:
  Packer(AttrContext& c, const RawTrees& raw, std::span<const uint32_t> order)
      : c_(c), raw_(raw), places_(raw.nodes.size(), kNowhere) {
    for (const uint32_t root : raw.roots) {
      if (places_[root] == kNowhere) place_tree(root);
      roots_.push_back(places_[root]);
    }
    heights(order);
  }
  PackedTrees<T> packed() {
    PackedTrees<T> result;
    std::vector<uint32_t> levels, starts{0};
    std::vector<T> values;
    for (const uint32_t root : raw_.roots) levels.push_back(heights_[root]);
    for (const std::vector<double>& set : raw_.sets) {
      for (const double value : set) values.push_back(static_cast<T>(value));
      std::sort(values.begin() + starts.back(), values.end());
      starts.push_back(static_cast<uint32_t>(values.size()));
    }
    BumpArena& arena = c_.arena();
    result.plain = plain_;
    result.trees = {arena.copy(nodes_).data(), arena.copy(roots_).data(),
                    arena.copy(levels).data(), static_cast<int64_t>(roots_.size()),
                    arena.copy(starts).data(), arena.copy(values).data()};
    return result;
  }

 private:
  using Node = kernels::TreeNode<T>;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  void place_tree(uint32_t root) {
    std::vector<uint32_t> queue{root};
    places_[root] = add({});
    for (size_t next = 0; next < queue.size(); ++next) {
      const RawTreeNode& raw = raw_.nodes[queue[next]];
      const uint32_t place = places_[queue[next]];
      if (raw.mode == TreeMode::kLeaf) {
        nodes_[place] = {kInfinity, 0, place, raw.payload};
        continue;
      }
      const Canonical<T> form = canonical<T>(raw);
      plain_ = plain_ && (form.rule & 3) == kernels::TreeRule::kGreater;
      const uint32_t left = add({});
      add({});
      nodes_[place] = {form.threshold, raw.feature, left, form.rule};
      place_child(form.swapped ? raw.on_false : raw.on_true, left, queue);
      place_child(form.swapped ? raw.on_true : raw.on_false, left + 1, queue);
    }
  }
  void place_child(uint32_t child, uint32_t slot, std::vector<uint32_t>& queue) {
    if (places_[child] == kNowhere) {
      places_[child] = slot;
      queue.push_back(child);
    } else {
      nodes_[slot] = {kInfinity, 0, places_[child], 0};
      shared_ = true;
    }
  }
  uint32_t add(const Node& node) {
    if (nodes_.size() > (1u << 30)) c_.reject("more than {} nodes", 1u << 30);
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  // The steps to the farthest leaf; where subtrees are shared, one more for each.
  void heights(std::span<const uint32_t> order) {
    heights_.assign(raw_.nodes.size(), 0);
    const uint32_t step = shared_ ? 2 : 1;
    for (const uint32_t at : order) {
      const RawTreeNode& node = raw_.nodes[at];
      if (node.mode != TreeMode::kLeaf)
        heights_[at] = step + std::max(heights_[node.on_true], heights_[node.on_false]);
    }
  }

  AttrContext& c_;
  const RawTrees& raw_;
  std::vector<uint32_t> places_, roots_, heights_;
  std::vector<Node> nodes_;
  bool plain_ = true, shared_ = false;
};

TreeRounding rounding_of(const RawTrees& raw, std::span<const uint32_t> order) {
  bool up = true, down = true;
  for (const uint32_t at : order) {
    const TreeMode mode = raw.nodes[at].mode;
    if (mode == TreeMode::kLeaf) continue;
    up = up && (mode == TreeMode::kLeq || mode == TreeMode::kGt);
    down = down && (mode == TreeMode::kLt || mode == TreeMode::kGte);
  }
  return up ? TreeRounding::kUp : down ? TreeRounding::kDown : TreeRounding::kNone;
}

template <typename T>
std::span<const T> values_of(AttrContext& c, std::span<const RawTrees::Weight> weights) {
  const std::span<T> values = c.arena().array<T>(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) values[i] = static_cast<T>(weights[i].value);
  return values;
}

LeafWeights pack_weights(AttrContext& c, const RawTrees& raw, int64_t target_count) {
  std::vector<RawTrees::Weight> weights = raw.weights;
  std::stable_sort(weights.begin(), weights.end(), [](const RawTrees::Weight& a, const RawTrees::Weight& b) {
    return std::tie(a.leaf, a.target) < std::tie(b.leaf, b.target);
  });
  LeafWeights packed;
  const std::span<uint32_t> starts = c.arena().array<uint32_t>(raw.leaves + 1);
  const std::span<uint32_t> targets = c.arena().array<uint32_t>(weights.size());
  const auto width = static_cast<size_t>(target_count);
  packed.dense = weights.size() == raw.leaves * width;
  for (size_t i = 0; i < weights.size(); ++i) {
    ++starts[weights[i].leaf + 1];
    targets[i] = weights[i].target;
    packed.dense = packed.dense && weights[i].leaf == i / width && weights[i].target == i % width;
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  packed.starts = starts;
  packed.targets = targets;
  if (raw.wide)
    packed.wide = values_of<double>(c, weights);
  else
    packed.narrow = values_of<float>(c, weights);
  return packed;
}

}  // namespace

void pack_trees(AttrContext& c, const RawTrees& raw, TreeEnsembleData& data) {
  const std::vector<uint32_t> order = order_of(c, raw);
  for (const uint32_t at : order) {
    const RawTreeNode& node = raw.nodes[at];
    if (node.mode != TreeMode::kLeaf)
      data.least_features = std::max(data.least_features, static_cast<int64_t>(node.feature) + 1);
  }
  data.rounding = rounding_of(raw, order);
  data.has_narrow = !raw.wide;
  data.has_wide = raw.wide || data.rounding == TreeRounding::kNone;
  if (data.has_narrow) data.narrow = Packer<float>(c, raw, order).packed();
  if (data.has_wide) data.wide = Packer<double>(c, raw, order).packed();
  data.weights = pack_weights(c, raw, data.targets);
}

}  // namespace plimsoll
