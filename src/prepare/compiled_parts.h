// What a compiled file holds ready, as preparing uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/arena_image.h"
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
  // Begins with that on other threads than this one, where there are to be any and it takes long enough.
  virtual void begin_verifying(int threads) const = 0;

  std::string path;
  std::span<const std::byte> graph;    // lowered and optimized, in ONNX's form
  std::span<const std::byte> weights;  // what runs read as it is
  std::span<const std::byte> absent;   // addresses without memory, as many as the largest tensor has bytes
  std::span<const std::byte> packed;   // whole pages
  int packed_threads = 0;              // for how many it was packed
  uint64_t layout = 0;                 // Weights::layout() of what was packed
  plan::SolvedPlacements placements;   // for the shapes that were named

  // What preparing makes of all this, for the program that wrote it; else none.
  std::optional<ArenaImage> image;  // PreparedModel's
  struct Plan {
    std::vector<std::vector<int64_t>> shapes;
    ArenaImage image;  // ShapePlan's
  };
  std::vector<Plan> plans;
  // Where the images' addresses lead besides the memory of their model: into this program and this file.
  std::vector<std::span<const std::byte>> places;
};

}  // namespace plimsoll
