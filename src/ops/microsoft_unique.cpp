// Values in the order of their first occurrence, where each element is among them, and how often each is.
#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes | kBoolType |
                       types(ElementType::kString, ElementType::kComplex64, ElementType::kComplex128));
  c.expect_rank(0, 1, 1);
  const Dim groups = c.unknown("unique");
  c.set_output(0, c.type(0), std::vector<Dim>{groups});
  c.set_output(2, ElementType::kInt64, std::vector<Dim>{groups});
  if (!c.ranked(0)) return c.set_unranked_output(1, ElementType::kInt64);
  c.set_output(1, ElementType::kInt64, c.dims(0));
}

void decompose(DecomposeContext& c) {
  Edge* const outputs[] = {c.out(0), nullptr, c.out(1), c.out(2)};
  c.build.emit_into(outputs, "", "Unique", c.node().inputs, c.attributes().set("sorted", int64_t{0}).list());
}

}  // namespace

extern const OpDef op_microsoft_unique = {
    .domain = kMicrosoftDomain, .name = "Unique", .outputs = {1, 3}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
