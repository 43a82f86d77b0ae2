#include "ops/rotary_heads.h"

namespace plimsoll {

// As [batch, heads, steps, size] and back.
void write_rotary_of_heads(DecomposeContext& c, Edge* size, const RotaryTables& tables,
                           const AttributeList& attributes) {
  Edge* x = c.in(0);
  const auto sizes = [&](int64_t start, int64_t end) {
    return c.op("Shape", {x}, c.attributes().set("start", start).set("end", end));
  };
  const AttributeList zeros_are_sizes = c.attributes().set("allowzero", int64_t{1});
  const auto turned = [&](Edge* value) {
    return c.op("Transpose", {value}, c.attributes().set("perm", std::vector<int64_t>{0, 2, 1, 3}));
  };
  Edge* divided = c.op("Concat", {sizes(0, 2), c.op("Div", {sizes(2, 3), size}), size},
                       c.attributes().set("axis", int64_t{0}));
  Edge* heads = turned(c.op("Reshape", {x, divided}, zeros_are_sizes));
  Edge* rotated =
      tables.positions == nullptr
          ? c.op("RotaryEmbedding", {heads, tables.cosine, tables.sine}, attributes)
          : c.op("RotaryEmbedding", {heads, tables.cosine, tables.sine, tables.positions}, attributes);
  c.op_into(0, "Reshape", {turned(rotated), c.op("Shape", {x})}, zeros_are_sizes);
}

}  // namespace plimsoll
