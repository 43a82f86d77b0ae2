// Inputs of ai.onnx.ml: rows of features, [N, C], or [C] for one row, in one of four types.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

inline constexpr std::string_view kMlDomain = "ai.onnx.ml";
inline constexpr TypeSet kFeatureTypes =
    types(ElementType::kFloat, ElementType::kDouble, ElementType::kInt64, ElementType::kInt32);

// Type and rank of input 0; throws if it has another number of features than `expected`, where that is known
// and `expected` is not negative.
void expect_feature_rows(const InferContext& c, int64_t expected);
// 1 for a vector. The rank must be known.
Dim row_count(const NodeContext& c);
struct FeatureRows {
  int64_t rows = 0, features = 0;
};
FeatureRows feature_rows(const TensorView& x);

// select: the piece of scratch in which input 0 becomes floats; run: those floats, which are the input's own
// if it has floats.
int64_t float_features_scratch(SelectContext& c);
const float* float_features(const RunContext& c, int64_t scratch_offset);

}  // namespace plimsoll
