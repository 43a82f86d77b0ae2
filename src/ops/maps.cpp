#include "ops/maps.h"

#include "ops/sequences.h"

namespace plimsoll {

ElementType expect_map(InferContext& c, TypeSet keys, TypeSet values) {
  const TypeInfo& type = c.input(0).type;
  if (type.kind != ValueKind::kMap || type.element == nullptr || !keys.contains(type.key) ||
      !values.contains(type.element->type))
    c.reject("input 0 ('{}'): expected a map, found {}", c.node().inputs[0]->name, to_string(type));
  return type.element->type;
}

MapParts map_at(const ValueRun& run, size_t input) {
  const TensorView map = run.input(input);
  if (map.kind != ValueKind::kMap)
    fail(ErrorCode::kInvalidArgument, "{}: input {}: expected a map", run.node().label(), input);
  return {map.items()[0], map.items()[1]};
}

TypeInfo map_of(InferContext& c, ElementType keys, ElementType values, Dim count) {
  TypeInfo element;
  element.type = values;
  element.ranked = true;
  element.dims = c.arena().copy(std::vector<Dim>{count});
  TypeInfo map = list_of(c, ValueKind::kMap, element);
  map.key = keys;
  return map;
}

}  // namespace plimsoll
