#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct Attrs {
  const TypeInfo* type = nullptr;  // of what it would hold, where it holds nothing
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (const Attribute* type = c.find("type", AttributeType::kTypeProto)) a->type = type->type_info;
  if (c.node().input(0) == nullptr && a->type == nullptr)
    c.reject("expected the attribute 'type' or an input, found neither");
  if (a->type != nullptr && tensor_type(*a->type) == ElementType::kUndefined)
    c.reject("attribute 'type': expected the type of a tensor or of a sequence of them");
  return a;
}

void infer(InferContext& c) {
  const TypeInfo* told = c.attrs<Attrs>().type;
  if (!c.has_input(0)) {
    // Some files tell the type of the optional, not of what it would hold.
    const bool is_optional = told->kind == ValueKind::kOptional && told->element != nullptr;
    const TypeInfo type = one_of(c, is_optional ? *told->element : *told, false);
    return c.set_output_type(0, list_of(c, ValueKind::kOptional, type), Dim(0));
  }
  const TypeInfo& type = c.input(0).type;
  if (type.kind == ValueKind::kTensor) c.expect_type(0, kViewTypes);
  if (type.kind != ValueKind::kTensor && type.kind != ValueKind::kSequence)
    c.reject("input 0 ('{}'): expected a tensor or a sequence, found {}", c.node().inputs[0]->name,
             to_string(type));
  if (told != nullptr && (told->kind != type.kind || tensor_type(*told) != tensor_type(type)))
    c.reject("input 0 ('{}'): expected {}, as the attribute 'type' says, found {}", c.node().inputs[0]->name,
             to_string(*told), to_string(type));
  c.set_output_type(0, list_of(c, ValueKind::kOptional, type), Dim(1));
}

void lower(LowerContext& c) {
  Edge* held = c.node().input(0);
  c.consists_of(0, [held] { return held == nullptr ? std::vector<Edge*>() : std::vector<Edge*>{held}; });
}

void run_values(ValueRun& run) {
  if (const TensorView held = run.input(0)) return run.set_output(0, held);
  run.give_output(0, none_of(tensor_type(*static_cast<const Attrs*>(run.node().attrs)->type)));
}

}  // namespace

extern const OpDef op_optional = {
    .name = "Optional",
    .inputs = {0, 1},
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
