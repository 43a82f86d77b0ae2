// What a compiled file holds ready, as preparing uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plan/solved.h"

namespace plimsoll {

// Locations of tensors that are not in the graph's own bytes.
inline constexpr const char* kCompiledWeights = "weights";  // as they are, aligned
inline constexpr const char* kAbsentWeights = "absent";     // in their packed form only

// The attribute that keeps the version of a node's domain where it is not the one that the model imports.
inline constexpr const char* kOpsetAttribute = "ai.plimsoll.opset";

// Outlives the model that is made from it.
class CompiledParts {
 public:
  virtual ~CompiledParts() = default;
  // Throws kInvalidModel if the bytes of weights are not those that were written; at the first call only, or
  // until it does not throw. From any thread.
  virtual void verify_weights(int threads) const = 0;

  std::string path;
  std::span<const std::byte> graph;    // lowered and optimized, in ONNX's form
  std::span<const std::byte> weights;  // what runs read as it is
  std::span<const std::byte> absent;   // addresses without memory, as many as the largest tensor has bytes
  std::span<const std::byte> packed;   // whole pages
  uint64_t layout = 0;                 // Weights::layout() of what was packed
  plan::SolvedPlacements placements;   // for the shapes that were named
};

}  // namespace plimsoll
