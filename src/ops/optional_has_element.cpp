#include "ops/sequences.h"

namespace plimsoll {
namespace {

// Before opset 18 the input is an optional; since then it may be what an optional holds, or absent.
std::optional<int64_t> known(const NodeContext& c) {
  if (!c.has_input(0)) return 0;
  if (c.input(0).type.kind != ValueKind::kOptional) return 1;
  const std::optional<Dim> length = c.input(0).length;
  return length && length->is_constant() ? std::optional(length->value()) : std::nullopt;
}

void infer(InferContext& c) {
  if (c.opset() < 18 && (!c.has_input(0) || c.input(0).type.kind != ValueKind::kOptional))
    c.reject("expected an optional, found {}", c.has_input(0) ? to_string(c.input(0).type) : "nothing");
  c.set_output(0, ElementType::kBool, std::vector<Dim>{});
  if (const auto value = known(c)) c.set_values(0, std::vector<Dim>{*value});
}

void lower(LowerContext& c) {
  const auto value = known(c);
  if (!value) return;
  const bool has = *value != 0;
  c.replace(0,
            c.builder().constant("has_element", ElementType::kBool, {}, std::as_bytes(std::span(&has, 1))));
}

void run_values(ValueRun& run) {
  const TensorView input = run.input(0);
  *run.make_output(0, ElementType::kBool, {}).as<bool>() = input && !input.is_none();
}

}  // namespace

extern const OpDef op_optional_has_element = {
    .name = "OptionalHasElement",
    .inputs = {0, 1},
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
