#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct Attrs {
  ElementType type = ElementType::kFloat;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  const int64_t code = c.integer("dtype", static_cast<int64_t>(ElementType::kFloat));
  if (code <= 0 || code > 255 || !is_known_type(static_cast<int>(code)))
    c.reject("attribute 'dtype': expected an element type, found {}", code);
  a->type = static_cast<ElementType>(code);
  return a;
}

void infer(InferContext& c) {
  TypeInfo element;
  element.type = c.attrs<Attrs>().type;
  c.set_output_type(0, list_of(c, ValueKind::kSequence, element), Dim(0));
}

void lower(LowerContext& c) {
  c.consists_of(0, [] { return std::vector<Edge*>(); });
}

void run_values(ValueRun& run) {
  const auto& a = *static_cast<const Attrs*>(run.node().attrs);
  run.give_output(0, run.allocate_list(ValueKind::kSequence, a.type, 0));
}

}  // namespace

extern const OpDef op_sequence_empty = {
    .name = "SequenceEmpty",
    .inputs = {0, 0},
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
