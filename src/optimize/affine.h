// y = scale * x + shift per channel, as rewrites gather it from BatchNormalization, Mul, Add, ...
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace plimsoll {

struct Affine {
  std::vector<float> scale, shift;  // one element, or one per channel
  // This first, then `next`.
  Affine then(const Affine& next) const;
  bool scales() const;  // some scale differs from 1
};

// What `node` does to its input `x`, if that is an affine map with constants: one number, or one per
// channel (dimension 1 of `rank`). Sub and Div with x on the right count only where they are affine.
std::optional<Affine> affine_of(const Node& node, const Edge& x, int64_t rank, int64_t channels);

}  // namespace plimsoll
