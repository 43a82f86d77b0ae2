// Range whose delta may be left out.
#include <cstring>

#include "ops/microsoft_decomposed.h"

namespace plimsoll {

extern const OpDef op_range;

namespace {

// The number 1 of a type that Range has.
std::span<std::byte> one_of(ElementType type, BumpArena& arena) {
  std::span<std::byte> bytes = arena.array<std::byte>(static_cast<size_t>(element_bits(type)) / 8);
  const auto write = [&](auto tag) {
    const auto one = static_cast<typename decltype(tag)::type>(1);
    std::memcpy(bytes.data(), &one, sizeof(one));
  };
  is_float(type) ? visit_float(type, write) : visit_integer(type, write);
  return bytes;
}

void infer(InferContext& c) {
  constexpr TypeSet kRangeTypes = types(ElementType::kFloat, ElementType::kDouble, ElementType::kInt16,
                                        ElementType::kInt32, ElementType::kInt64);
  c.expect_type(0, kRangeTypes);
  std::vector<Facts> inputs = facts_of_inputs(c);
  if (!c.has_input(2)) {
    inputs.resize(3);
    Facts& delta = inputs[2];
    delta.type.type = c.type(0);
    delta.type.ranked = true;
    auto* view = c.arena().make<TensorView>();
    *view = {one_of(c.type(0), c.arena()).data(), c.type(0), false, {}};
    delta.constant = view;
  }
  infer_as(c, op_range, "", 11, inputs, {});
}

void decompose(DecomposeContext& c) {
  Edge* delta = c.in(2);
  if (delta == nullptr)
    delta = c.build.constant("one", c.type(0), {}, one_of(c.type(0), c.build.graph().arena()));
  c.op_into(0, "Range", {c.in(0), c.in(1), delta});
}

}  // namespace

extern const OpDef op_microsoft_range = {
    .domain = kMicrosoftDomain, .name = "Range", .inputs = {2, 3}, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
