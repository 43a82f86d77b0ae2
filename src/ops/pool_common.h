// Pooling: what MaxPool, AveragePool and the global forms share.
#pragma once

#include "kernels/pool.h"
#include "ops/window.h"

namespace plimsoll {

struct PoolAttrs {
  WindowAttrs window;
  bool ceil_mode = false;
  bool count_padding = false;  // AveragePool
  bool column_major = false;   // MaxPool: how indices count
};

// Windows: reads the attributes, and infers output 0 (and further outputs of type int64).
void read_pool(AttrContext& c, PoolAttrs& attrs);
void infer_pool(InferContext& c, TypeSet types);
void region_pool(RegionContext& c);
// The global forms: one element per channel.
void infer_global_pool(InferContext& c);
const void* read_global_pool(AttrContext& c);
void region_global_pool(RegionContext& c);

// `kind`: see pool_gradient.cpp.
void gradient_pool(GradientContext& c, std::string_view kind, double p = 2);
// What a global pooling reduces: a tensor of one number, in the gradient's type.
Edge* pooled_elements(const GradientContext& c);

Window pool_window(const RunContext& c);
// What kernels/pool.h takes: floats, at most three spatial dimensions. Dimensions that nothing is pooled
// along count as images in front, and, where channels are not last, as channels behind.
std::optional<kernels::PoolShape> plane_pool(const TensorView& x, const Window& w);

}  // namespace plimsoll
