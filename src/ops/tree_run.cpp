#include "ops/tree_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/feature_rows.h"

namespace plimsoll {
namespace {

constexpr int64_t kBlockRows = 64;
constexpr int64_t kTreesPerPiece = 64;      // leaves of so many trees are found before they are added up
constexpr int64_t kTreesForThreads = 1024;  // a row alone is worth threads

bool is_wide(const TreeEnsembleData& data, ElementType input) {
  return !data.has_narrow || (input == ElementType::kDouble && data.rounding == TreeRounding::kNone);
}

}  // namespace

const void* select_trees(SelectContext& c, const TreeEnsembleData& data) {
  auto* choice = c.make<TreeChoice>();
  const bool wide = is_wide(data, c.type(0));
  const int64_t trees = wide ? data.wide.trees.count : data.narrow.trees.count;
  // The sums of a block stay in the cache.
  choice->block_rows = std::clamp<int64_t>(16384 / std::max<int64_t>(data.targets, 1), 8, kBlockRows);
  choice->tasks = std::max(c.threads, 1);
  choice->by_trees = trees >= kTreesForThreads && choice->tasks > 1;
  const int64_t rows = choice->block_rows * choice->tasks;
  choice->sums = c.scratch(Dim(checked_mul(data.targets, rows * 8)));
  choice->seen = c.scratch(Dim(checked_mul(data.targets, rows)));
  const bool converted = c.type(0) != (wide ? ElementType::kDouble : ElementType::kFloat);
  if (converted && c.ranked(0)) choice->features = c.scratch(c.dims(0).back() * Dim(rows * (wide ? 8 : 4)));
  if (choice->by_trees) choice->leaves = c.scratch(Dim(trees * 4));
  return choice;
}

namespace {

float rounded(double x, TreeRounding rounding) {
  const auto near = static_cast<float>(x);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (rounding == TreeRounding::kUp && static_cast<double>(near) < x) return std::nextafter(near, kInfinity);
  if (rounding == TreeRounding::kDown && static_cast<double>(near) > x)
    return std::nextafter(near, -kInfinity);
  return near;
}

// The features of a stretch of rows in the type of the thresholds: the input's own, or converted to
// `scratch`.
template <typename T>
const T* features_of(const TensorView& x, int64_t start, int64_t count, TreeRounding rounding, T* scratch) {
  if (x.type == element_type_of<T>()) return x.as<T>() + start;
  visit_numeric(x.type, [&](auto tag) {
    using From = typename decltype(tag)::type;
    const From* from = x.as<From>() + start;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<From, double> && std::is_same_v<T, float>)
        scratch[i] = rounded(from[i], rounding);
      else
        scratch[i] = static_cast<T>(load_element(from[i]));
    }
  });
  return scratch;
}

// Sums of a block of rows. W is the type of the weights.
template <typename W>
class Sums {
 public:
  Sums(const TreeEnsembleData& data, std::span<const W> weights, TreeAggregate aggregate, double* values,
       uint8_t* seen)
      : leaves_(data.weights),
        weights_(weights.data()),
        targets_(data.targets),
        aggregate_(aggregate),
        values_(values),
        seen_(seen),
        dense_(data.weights.dense &&
               (aggregate == TreeAggregate::kSum || aggregate == TreeAggregate::kAverage)) {}
  void clear(int64_t rows) {
    std::fill_n(values_, rows * targets_, 0.0);
    std::fill_n(seen_, rows * targets_, static_cast<uint8_t>(dense_ ? 1 : 0));
  }
  void add(int64_t row, uint32_t leaf) {
    double* values = values_ + row * targets_;
    if (dense_) {
      const W* weights = weights_ + leaf * targets_;
      for (int64_t i = 0; i < targets_; ++i) values[i] += static_cast<double>(weights[i]);
      return;
    }
    for (uint32_t i = leaves_.starts[leaf]; i < leaves_.starts[leaf + 1]; ++i)
      add_weight(row * targets_ + leaves_.targets[i], static_cast<double>(weights_[i]));
  }
  TreeSums of_row(int64_t row) const { return {values_ + row * targets_, seen_ + row * targets_}; }

 private:
  void add_weight(int64_t at, double weight) {
    if (aggregate_ == TreeAggregate::kMin)
      values_[at] = seen_[at] != 0 ? std::min(values_[at], weight) : weight;
    else if (aggregate_ == TreeAggregate::kMax)
      values_[at] = seen_[at] != 0 ? std::max(values_[at], weight) : weight;
    else
      values_[at] += weight;
    seen_[at] = 1;
  }
  const LeafWeights& leaves_;
  const W* weights_;
  int64_t targets_;
  TreeAggregate aggregate_;
  double* values_;
  uint8_t* seen_;
  bool dense_;
};

// One row through trees [first, last).
template <typename T>
void find_row(const PackedTrees<T>& packed, bool fast, int64_t first, int64_t last, const T* x,
              uint32_t* nodes) {
  if (fast) return kernels::find_leaves_of_row(packed.trees, first, last, x, nodes);
  for (int64_t tree = first; tree < last; ++tree)
    nodes[tree - first] = kernels::find_leaf(packed.trees, tree, x);
}

template <typename T, typename W>
void add_block(const PackedTrees<T>& packed, const T* x, int64_t stride, int64_t rows, Sums<W>& sums) {
  const kernels::Trees<T>& trees = packed.trees;
  const bool fast = packed.plain && !kernels::has_nan(x, rows * stride);
  uint32_t nodes[std::max(kBlockRows, kTreesPerPiece)];
  const int64_t together = fast && rows >= 8 ? rows : 0;
  for (int64_t tree = 0; together > 0 && tree < trees.count; ++tree) {
    kernels::find_leaves(trees, tree, x, stride, together, nodes);
    for (int64_t row = 0; row < together; ++row) sums.add(row, trees.nodes[nodes[row]].leaf);
  }
  for (int64_t row = together; row < rows; ++row) {
    for (int64_t first = 0; first < trees.count; first += kTreesPerPiece) {
      const int64_t last = std::min(trees.count, first + kTreesPerPiece);
      find_row(packed, fast, first, last, x + row * stride, nodes);
      for (int64_t tree = first; tree < last; ++tree) sums.add(row, trees.nodes[nodes[tree - first]].leaf);
    }
  }
}

// One row: threads share the trees, one adds up.
template <typename T, typename W>
void add_by_trees(const RunContext& c, const PackedTrees<T>& packed, const T* x, int64_t features,
                  Sums<W>& sums) {
  auto* nodes = c.scratch_as<uint32_t>(c.choice<TreeChoice>().leaves);
  const bool fast = packed.plain && !kernels::has_nan(x, features);
  const int64_t count = packed.trees.count, pieces = c.threads;
  kernels::parallel_for(c.threads, pieces, [&](int64_t piece) {
    const int64_t first = count * piece / pieces, last = count * (piece + 1) / pieces;
    find_row(packed, fast, first, last, x, nodes + first);
  });
  for (int64_t tree = 0; tree < count; ++tree) sums.add(0, packed.trees.nodes[nodes[tree]].leaf);
}

template <typename T, typename W>
void run_packed(const RunContext& c, const TreeEnsembleData& data, const PackedTrees<T>& packed,
                std::span<const W> weights, TreeAggregate aggregate, FinishRow finish) {
  const auto& choice = c.choice<TreeChoice>();
  const TensorView& x = c.inputs[0];
  const auto [rows, features] = feature_rows(x);
  const int64_t blocks = (rows + choice.block_rows - 1) / choice.block_rows;
  const int64_t tasks = std::min<int64_t>(choice.tasks, blocks);
  const bool by_trees = choice.by_trees && rows == 1;
  kernels::parallel_for(choice.tasks, tasks, [&, rows = rows, features = features](int64_t task) {
    const int64_t place = task * choice.block_rows;
    Sums<W> sums(data, weights, aggregate, c.scratch_as<double>(choice.sums) + place * data.targets,
                 c.scratch_as<uint8_t>(choice.seen) + place * data.targets);
    T* converted = c.scratch_as<T>(choice.features) + place * features;
    for (int64_t block = blocks * task / tasks; block < blocks * (task + 1) / tasks; ++block) {
      const int64_t first = block * choice.block_rows, count = std::min(rows - first, choice.block_rows);
      const T* from = features_of<T>(x, first * features, count * features, data.rounding, converted);
      sums.clear(count);
      if (by_trees)
        add_by_trees(c, packed, from, features, sums);
      else
        add_block(packed, from, features, count, sums);
      for (int64_t row = 0; row < count; ++row) finish(c, first + row, sums.of_row(row));
    }
  });
}

}  // namespace

void run_trees(const RunContext& c, const TreeEnsembleData& data, TreeAggregate aggregate, FinishRow finish) {
  const LeafWeights& weights = data.weights;
  if (!data.has_narrow) return run_packed(c, data, data.wide, weights.wide, aggregate, finish);
  if (is_wide(data, c.inputs[0].type))
    return run_packed(c, data, data.wide, weights.narrow, aggregate, finish);
  run_packed(c, data, data.narrow, weights.narrow, aggregate, finish);
}

}  // namespace plimsoll
