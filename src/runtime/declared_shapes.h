// Shapes of a run against those that the model declares.
#pragma once

#include <functional>
#include <vector>

#include "onnx/reader.h"
#include "plimsoll/model.h"

namespace plimsoll {

// What files often say of their inputs and do not mean: an empty shape where the shape is unknown, and one
// name for dimensions that may differ. ONNX Runtime takes such runs with a warning.
class DeclaredShapes {
 public:
  using ShapeOf = std::function<const std::vector<int64_t>*(size_t input)>;  // null: none is given
  DeclaredShapes() = default;
  explicit DeclaredShapes(const std::vector<ValueInfo>& inputs);

  // What must not be believed for these shapes; takes no memory if nothing.
  LoadOptions::Loose contradicted(const ShapeOf& shape_of) const;

 private:
  struct Place {
    size_t input, dim;
  };
  struct Scalar {
    size_t input;
    std::string name;
  };
  std::vector<Scalar> scalars_;
  std::vector<std::pair<Place, Place>> same_;  // by name: each with the first of it
};

// Shapes by name, some of which may be missing; all must outlive the result.
DeclaredShapes::ShapeOf shapes_by_name(const std::vector<ValueInfo>& inputs, const Shapes& shapes);
// Both.
LoadOptions::Loose joined(LoadOptions::Loose a, const LoadOptions::Loose& b);
std::string describe(const LoadOptions::Loose& loose);  // for a warning

}  // namespace plimsoll
