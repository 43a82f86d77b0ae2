// Decision trees, laid out for descending many chains at a time without branches. Nothing here allocates or
// throws.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

// x[feature] > threshold leads to left + 1, everything else to left. A leaf has an infinite threshold and
// leads to itself, so that a chain may take more steps than its path is long.
template <typename T>
struct TreeNode {
  T threshold;
  uint32_t feature;
  uint32_t left;
  uint32_t leaf;  // of a leaf: its number; else how the node differs from the above, a TreeRule
};

// The rules of nodes that are not plain comparisons, and where NaN goes.
struct TreeRule {
  enum Kind : uint32_t { kGreater = 0, kDiffers = 1, kNotMember = 2 };  // what leads to left + 1
  static constexpr uint32_t kNanRight = 4;
  static constexpr uint32_t kSetShift = 3;  // the number of a set is above
};

template <typename T>
struct Trees {
  const TreeNode<T>* nodes = nullptr;
  const uint32_t* roots = nullptr;
  const uint32_t* levels = nullptr;  // by tree: the steps of its longest path
  int64_t count = 0;
  const uint32_t* set_starts = nullptr;  // sets: sorted stretches of set_values
  const T* set_values = nullptr;
};

// The leaves (numbers of nodes) that `rows` rows reach in one tree. Every node is a plain comparison, no
// feature is NaN.
template <typename T>
void find_leaves(const Trees<T>& trees, int64_t tree, const T* x, int64_t stride, int64_t rows,
                 uint32_t* leaves);
// The leaves that one row reaches in trees [first, last). Likewise.
template <typename T>
void find_leaves_of_row(const Trees<T>& trees, int64_t first, int64_t last, const T* x, uint32_t* leaves);
// One row in one tree, by every rule, and with NaN.
template <typename T>
uint32_t find_leaf(const Trees<T>& trees, int64_t tree, const T* x);

bool has_nan(const float* x, int64_t count);
bool has_nan(const double* x, int64_t count);

}  // namespace plimsoll::kernels
