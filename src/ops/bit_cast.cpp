#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct BitCastAttrs {
  ElementType to = ElementType::kUndefined;
};

const void* attrs(AttrContext& c) {
  BitCastAttrs* a = c.make<BitCastAttrs>();
  const int64_t to = c.integer("to");
  if (to < 0 || to > INT32_MAX || !is_known_type(static_cast<int>(to)))
    c.reject("attribute 'to': expected an element type, found {}", to);
  a->to = static_cast<ElementType>(to);
  if (a->to == ElementType::kString) c.reject("attribute 'to': expected any type but string");
  return a;
}

void infer(InferContext& c) {
  const ElementType from = c.type(0), to = c.attrs<BitCastAttrs>().to;
  if (from == ElementType::kString) c.reject("input 0: expected any type but string");
  if (from != ElementType::kUndefined && element_bits(from) != element_bits(to))
    c.reject("expected a type of {} bits as {} has, found {}", element_bits(from), element_type_name(from),
             element_type_name(to));
  set_output_like(c, 0, to, 0);
}

}  // namespace

extern const OpDef op_bit_cast = {
    .name = "BitCast",
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .cost = cost_elementwise,
    .layout = layout_unary,
};

}  // namespace plimsoll
