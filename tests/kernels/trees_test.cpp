// Leaves of random trees: all rows at once, all trees at once, and one by one by the rules.
#include "kernels/trees.h"

#include <limits>

#include "kernels/float_types.h"

namespace plimsoll::kernels {
namespace {

constexpr int64_t kFeatures = 7;

template <typename T>
struct Forest {
  explicit Forest(Dice& dice) {
    const int64_t count = dice.pick(1, 20);
    for (int64_t tree = 0; tree < count; ++tree) {
      roots.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.emplace_back();
      levels.push_back(grow(dice, roots.back(), static_cast<int>(dice.pick(0, 9))));
    }
    trees = {nodes.data(), roots.data(), levels.data(), count};
  }
  // Makes node `at` the root of a tree of at most `most` levels; how many it has.
  uint32_t grow(Dice& dice, uint32_t at, int most) {
    if (most == 0 || dice.one_of(5)) {
      nodes[at] = {std::numeric_limits<T>::infinity(), 0, at, at};
      return 0;
    }
    const auto left = static_cast<uint32_t>(nodes.size());
    nodes.resize(nodes.size() + 2);
    nodes[at] = {static_cast<T>(dice.pick(-3, 3)), static_cast<uint32_t>(dice.pick(0, kFeatures - 1)), left,
                 0};
    return 1 + std::max(grow(dice, left, most - 1), grow(dice, left + 1, most - 1));
  }
  uint32_t leaf_of(uint32_t at, const T* x) const {
    while (nodes[at].left != at) at = nodes[at].left + (x[nodes[at].feature] > nodes[at].threshold ? 1 : 0);
    return at;
  }
  std::vector<TreeNode<T>> nodes;
  std::vector<uint32_t> roots, levels;
  Trees<T> trees;
};

template <typename T>
void expect_leaves(Dice& dice) {
  const Forest<T> forest(dice);
  const int64_t rows = dice.pick(1, 40), stride = kFeatures + dice.pick(0, 3), count = forest.trees.count;
  std::vector<T> values;
  for (int64_t i = 0; i < (rows - 1) * stride + kFeatures; ++i)
    values.push_back(static_cast<T>(dice.pick(-4, 4)));
  const Array<T> x(values);
  const Array<uint32_t> by_tree(rows);
  const int64_t tree = dice.pick(0, count - 1), first = dice.pick(0, tree);
  find_leaves(forest.trees, tree, x.data(), stride, rows, by_tree.data());
  for (int64_t row = 0; row < rows; ++row) {
    const T* features = x.data() + row * stride;
    const uint32_t leaf = forest.leaf_of(forest.roots[static_cast<size_t>(tree)], features);
    ASSERT_EQ(by_tree[row], leaf) << row << " of " << rows;
    ASSERT_EQ(find_leaf(forest.trees, tree, features), leaf) << row << " of " << rows;
    const Array<uint32_t> by_row(count - first);
    find_leaves_of_row(forest.trees, first, count, features, by_row.data());
    for (int64_t i = first; i < count; ++i)
      ASSERT_EQ(by_row[i - first], forest.leaf_of(forest.roots[static_cast<size_t>(i)], features)) << i;
  }
}

TEST(TreeLeaves, OfRandomForests) {
  Dice dice(1);
  for (int round = 0; round < 100 && !testing::Test::HasFailure(); ++round) {
    expect_leaves<float>(dice);
    expect_leaves<double>(dice);
  }
}

TEST(TreeLeaves, NaNIsFoundWhereverItIs) {
  for (int64_t count : {1, 2, 255, 256, 257, 700}) {
    std::vector<float> x(static_cast<size_t>(count), std::numeric_limits<float>::infinity());
    EXPECT_FALSE(has_nan(x.data(), count));
    EXPECT_FALSE(has_nan(std::vector<double>(x.begin(), x.end()).data(), count));
    for (size_t at : {size_t{0}, x.size() / 2, x.size() - 1}) {
      std::vector<float> y = x;
      y[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(has_nan(y.data(), count)) << at << " of " << count;
      EXPECT_TRUE(has_nan(std::vector<double>(y.begin(), y.end()).data(), count)) << at << " of " << count;
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels
