#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr TypeSet kEyeTypes = kNumericTypes | kBoolType;

struct Attrs {
  ElementType type = ElementType::kUndefined;  // undefined: the input's
  int64_t k = 0;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->k = c.integer("k", 0);
  if (!c.has("dtype")) return a;
  const int64_t code = c.integer("dtype");
  if (code <= 0 || code > 31 || !kEyeTypes.contains(static_cast<ElementType>(code)))
    c.reject("dtype {} is not allowed", code);
  a->type = static_cast<ElementType>(code);
  return a;
}

void infer(InferContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  c.expect_type(0, kEyeTypes);
  c.expect_rank(0, 2, 2);
  const ElementType type = a.type == ElementType::kUndefined ? c.type(0) : a.type;
  if (!c.ranked(0)) return c.set_output(0, type, unknown_dims(c, 2));
  c.set_output(0, type, c.dims(0));
}

void run(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  std::memset(out.data, 0, static_cast<size_t>(out.bytes()));
  const int64_t rows = out.dims[0], columns = out.dims[1];
  const int64_t k = std::clamp(c.attrs<Attrs>().k, -rows, columns);
  auto set_ones = [&](auto one) {
    for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns; ++r)
      std::memcpy(out.data + (r * columns + r + k) * static_cast<int64_t>(sizeof(one)), &one, sizeof(one));
  };
  if (out.type == ElementType::kBool) return set_ones(true);
  visit_numeric(out.type, [&](auto tag) { set_ones(static_cast<typename decltype(tag)::type>(1.0f)); });
}

}  // namespace

extern const OpDef op_eye_like = {
    .name = "EyeLike",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .unaligned_inputs = 1,
    .gradient = no_gradient,
};

}  // namespace plimsoll
