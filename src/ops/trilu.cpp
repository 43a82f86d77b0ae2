#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  bool upper = true;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->upper = c.integer("upper", 1) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_rank(0, 2, InferContext::kMaxRank);
  if (c.has_input(1)) {
    c.expect_type(1, types(ElementType::kInt64));
    const auto length = known_length(c, 1);
    if (length && *length != 1)
      c.reject("input 1: expected one number, found shape {}", to_string(c.dims(1)));
  }
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  c.set_output(0, c.type(0), c.dims(0));
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

void run(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  const bool upper = c.attrs<Attrs>().upper;
  if (out.elements() == 0) return;
  kernels::copy_bytes(out.data, c.inputs[0].data, out.bytes());
  const int64_t rows = out.dims[out.rank() - 2], columns = out.dims.back();
  const int64_t k = std::clamp(c.has_input(1) ? index_at(c.inputs[1], 0) : 0, -rows, columns);
  const auto width = static_cast<int64_t>(width_of(out.type));
  const int64_t total = out.elements() / columns;
  for (int64_t r = 0; r < total; ++r) {
    // The upper part begins on diagonal k, the lower part ends with it.
    const int64_t edge = std::clamp<int64_t>(r % rows + k + (upper ? 0 : 1), 0, columns);
    std::byte* row = out.data + r * columns * width;
    const int64_t first = upper ? 0 : edge, last = upper ? edge : columns;
    std::memset(row + first * width, 0, static_cast<size_t>((last - first) * width));
  }
}

void gradient(GradientContext& c) {
  const AttributeList attributes = c.attributes().set("upper", int64_t{c.attrs<Attrs>().upper});
  c.set(0, c.op("Trilu", {c.gradient(), c.in(1)}, attributes));
}

}  // namespace

extern const OpDef op_trilu = {
    .name = "Trilu",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
