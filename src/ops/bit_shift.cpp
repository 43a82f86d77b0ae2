#include "ops/elementwise.h"

namespace plimsoll {
namespace {

struct ShiftAttrs : BinaryAttrs {
  bool left = true;
};

const void* attrs(AttrContext& c) {
  ShiftAttrs* a = c.make<ShiftAttrs>();
  const std::string_view direction = c.text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    c.reject("attribute 'direction': expected LEFT or RIGHT, found '{}'", direction);
  a->left = direction == "LEFT";
  return a;
}

void infer(InferContext& c) {
  infer_binary(c, kUnsignedTypes);
}

// By the element's width or more nothing is left.
template <typename T>
T shift(T value, T count, bool left) {
  if (count >= sizeof(T) * 8) return 0;
  return left ? static_cast<T>(static_cast<WrapType<T>>(value) << count) : static_cast<T>(value >> count);
}

void run(const RunContext& c) {
  const bool left = c.attrs<ShiftAttrs>().left;
  visit_width(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      run_binary<T, T>(c, [left](T value, T count) { return shift<T>(value, count, left); });
  });
}

}  // namespace

extern const OpDef op_bit_shift = {
    .name = "BitShift",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
};

}  // namespace plimsoll
