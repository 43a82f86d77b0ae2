#include "graph/gradient.h"
#include "ops/cast_elements.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

// Before opset 6 the type is given by name.
ElementType type_by_name(AttrContext& c, std::string_view name) {
  constexpr std::pair<std::string_view, ElementType> kNames[] = {
      {"FLOAT", ElementType::kFloat},   {"UINT8", ElementType::kUint8},     {"INT8", ElementType::kInt8},
      {"UINT16", ElementType::kUint16}, {"INT16", ElementType::kInt16},     {"INT32", ElementType::kInt32},
      {"INT64", ElementType::kInt64},   {"STRING", ElementType::kString},   {"BOOL", ElementType::kBool},
      {"DOUBLE", ElementType::kDouble}, {"FLOAT16", ElementType::kFloat16}, {"UINT32", ElementType::kUint32},
      {"UINT64", ElementType::kUint64}};
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  c.reject("attribute 'to': \"{}\" is not an element type", name);
}

const void* attrs(AttrContext& c) {
  CastAttrs* a = c.make<CastAttrs>();
  if (c.opset() < 6) {
    a->to = type_by_name(c, c.text("to"));
    return a;
  }
  const int64_t to = c.integer("to");
  if (to < 0 || to > 1000 || !is_known_type(static_cast<int>(to)))
    c.reject("attribute 'to': {} is not an element type", to);
  a->to = static_cast<ElementType>(to);
  read_cast_rules(c, *a);
  return a;
}

void infer(InferContext& c) {
  infer_cast(c, c.attrs<CastAttrs>().to);
}

void gradient(GradientContext& c) {
  c.set(0, c.op("Cast", {c.gradient()}, c.attributes().set("to", static_cast<int64_t>(c.type(0)))));
}

}  // namespace

extern const OpDef op_cast = {
    .name = "Cast",
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run_cast,
    .cost = cost_elementwise,
    .layout = layout_unary,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
