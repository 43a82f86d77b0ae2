// What the operators of ai.onnx.ml on maps share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

// A map's parts (tensor/tensor.h): equal positions of keys and values belong together.
struct MapParts {
  TensorView keys, values;
  int64_t count() const { return keys.elements(); }
};

// Input 0 is a map with such keys and values; throws otherwise. Returns the type of its values.
ElementType expect_map(InferContext& c, TypeSet keys, TypeSet values);
MapParts map_at(const ValueRun& run, size_t input);
TypeInfo map_of(InferContext& c, ElementType keys, ElementType values, Dim count);

}  // namespace plimsoll
