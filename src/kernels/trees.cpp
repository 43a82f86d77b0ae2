#include "kernels/trees.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::kernels {
namespace {

// Chains that descend together: their loads wait for each other's no longer than one alone would.
constexpr int64_t kChains = 8;
constexpr uint32_t kLevelsPerCheck = 4;

// Descends kChains chains by `levels`; row(k) is where chain k reads.
template <typename T, typename Row>
inline void descend(const TreeNode<T>* nodes, uint32_t levels, uint32_t* at, Row row) {
  for (uint32_t level = 0; level < levels;) {
    const uint32_t stop = std::min(levels, level + kLevelsPerCheck);
    for (; level < stop; ++level) {
#pragma GCC unroll 8
      for (int64_t k = 0; k < kChains; ++k) {
        const TreeNode<T>& node = nodes[at[k]];
        at[k] = node.left + static_cast<uint32_t>(row(k)[node.feature] > node.threshold);
      }
    }
    if (level >= levels) return;
    uint32_t moving = 0;
    for (int64_t k = 0; k < kChains; ++k) moving |= nodes[at[k]].left ^ at[k];
    if (moving == 0) return;
  }
}

template <typename T>
bool is_member(const Trees<T>& trees, uint32_t set, T value) {
  return std::binary_search(trees.set_values + trees.set_starts[set],
                            trees.set_values + trees.set_starts[set + 1], value);
}

template <typename T>
bool any_nan(const T* x, int64_t count) {
  constexpr int64_t kBlock = 256;
  for (int64_t start = 0; start < count; start += kBlock) {
    bool found = false;
    const int64_t end = std::min(count, start + kBlock);
    for (int64_t i = start; i < end; ++i) found |= x[i] != x[i];
    if (found) return true;
  }
  return false;
}

}  // namespace

template <typename T>
void find_leaves(const Trees<T>& trees, int64_t tree, const T* x, int64_t stride, int64_t rows,
                 uint32_t* leaves) {
  const uint32_t root = trees.roots[tree], levels = trees.levels[tree];
  int64_t row = 0;
  for (; row + kChains <= rows; row += kChains) {
    uint32_t at[kChains];
    std::fill_n(at, kChains, root);
    const T* base = x + row * stride;
    descend(trees.nodes, levels, at, [base, stride](int64_t k) { return base + k * stride; });
    std::copy_n(at, kChains, leaves + row);
  }
  for (; row < rows; ++row) {
    uint32_t at = root;
    for (uint32_t level = 0; level < levels; ++level) {
      const TreeNode<T>& node = trees.nodes[at];
      at = node.left + static_cast<uint32_t>(x[row * stride + node.feature] > node.threshold);
    }
    leaves[row] = at;
  }
}

template <typename T>
void find_leaves_of_row(const Trees<T>& trees, int64_t first, int64_t last, const T* x, uint32_t* leaves) {
  int64_t tree = first;
  for (; tree + kChains <= last; tree += kChains) {
    uint32_t at[kChains];
    std::copy_n(trees.roots + tree, kChains, at);
    const uint32_t levels = *std::max_element(trees.levels + tree, trees.levels + tree + kChains);
    descend(trees.nodes, levels, at, [x](int64_t) { return x; });
    std::copy_n(at, kChains, leaves + (tree - first));
  }
  for (; tree < last; ++tree) find_leaves(trees, tree, x, 0, 1, leaves + (tree - first));
}

template <typename T>
uint32_t find_leaf(const Trees<T>& trees, int64_t tree, const T* x) {
  uint32_t at = trees.roots[tree];
  for (;;) {
    const TreeNode<T>& node = trees.nodes[at];
    if (node.left == at) return at;
    const T value = x[node.feature];
    bool right = value > node.threshold;
    if (std::isnan(value)) {
      right = (node.leaf & TreeRule::kNanRight) != 0;
    } else if (const uint32_t kind = node.leaf & 3; kind != TreeRule::kGreater) {
      right = kind == TreeRule::kDiffers ? value != node.threshold
                                         : !is_member(trees, node.leaf >> TreeRule::kSetShift, value);
    }
    at = node.left + static_cast<uint32_t>(right);
  }
}

bool has_nan(const float* x, int64_t count) {
  return any_nan(x, count);
}
bool has_nan(const double* x, int64_t count) {
  return any_nan(x, count);
}

template void find_leaves(const Trees<float>&, int64_t, const float*, int64_t, int64_t, uint32_t*);
template void find_leaves(const Trees<double>&, int64_t, const double*, int64_t, int64_t, uint32_t*);
template void find_leaves_of_row(const Trees<float>&, int64_t, int64_t, const float*, uint32_t*);
template void find_leaves_of_row(const Trees<double>&, int64_t, int64_t, const double*, uint32_t*);
template uint32_t find_leaf(const Trees<float>&, int64_t, const float*);
template uint32_t find_leaf(const Trees<double>&, int64_t, const double*);

}  // namespace plimsoll::kernels
