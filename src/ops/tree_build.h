// Ensembles of trees as attributes give them, and packed for the kernel.
#pragma once

#include <vector>

#include "graph/op_def.h"
#include "kernels/trees.h"

namespace plimsoll {

enum class TreeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };  // as TreeEnsemble counts

struct RawTreeNode {
  TreeMode mode = TreeMode::kLeaf;
  bool missing_tracks_true = false;
  double value = 0;
  uint32_t feature = 0;
  uint32_t on_true = 0, on_false = 0;  // places in RawTrees::nodes
  uint32_t payload = 0;                // of a leaf: its number; of a member test: its set
};
struct RawTrees {
  std::vector<RawTreeNode> nodes;
  std::vector<uint32_t> roots;
  std::vector<std::vector<double>> sets;
  struct Weight {
    uint32_t leaf, target;
    double value;
  };
  std::vector<Weight> weights;
  uint32_t leaves = 0;
  bool wide = false;  // thresholds or weights are doubles
};

// What a leaf adds: stretches of targets and values, by the leaf's number.
struct LeafWeights {
  std::span<const uint32_t> starts, targets;
  std::span<const float> narrow;  // the values; empty if they are doubles
  std::span<const double> wide;
  bool dense = false;  // every leaf has one for every target, in order
};

template <typename T>
struct PackedTrees {
  kernels::Trees<T> trees;
  bool plain = true;  // comparisons only: the fast kernel will do where no feature is NaN
};

// How doubles become floats so that every comparison stays what it was.
enum class TreeRounding : uint8_t { kUp, kDown, kNone };  // none: there is no such way

struct TreeEnsembleData {
  PackedTrees<float> narrow;  // absent if thresholds are doubles
  PackedTrees<double> wide;   // for those, and for doubles as input where rounding will not do
  bool has_narrow = false, has_wide = false;
  TreeRounding rounding = TreeRounding::kUp;
  LeafWeights weights;
  int64_t targets = 1;
  int64_t least_features = 0;  // what the nodes ask for
};

// Throws if trees have cycles. Paths may meet again: LightGBM's exports share subtrees.
void pack_trees(AttrContext& c, const RawTrees& raw, TreeEnsembleData& data);

// The numbers of attribute NAME, or of NAME_as_tensor; `wide` becomes true for doubles.
std::vector<double> read_tree_numbers(AttrContext& c, std::string_view name, std::string_view tensor_name,
                                      bool& wide);
std::vector<double> tensor_numbers(AttrContext& c, std::string_view name, const TensorData& tensor);
// The trees of TreeEnsembleClassifier and -Regressor; names of the attributes with the weights begin with
// `prefix`.
RawTrees read_trees(AttrContext& c, const std::string& prefix, int64_t targets);

}  // namespace plimsoll
