#include "kernels/byte_table.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

// Inputs: Y's scale and zero point, then a tensor, its scale and its zero point, over and over.
constexpr size_t kYScale = 0, kYZero = 1, kFirst = 2;

struct ConcatAttrs {
  int64_t axis = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ConcatAttrs>();
  a->axis = c.integer("axis");
  return a;
}

void infer(InferContext& c) {
  if (c.input_count() < kFirst + 3 || (c.input_count() - kFirst) % 3 != 0)
    c.reject("expected a scale, a zero point and threes of tensor, scale and zero point, found {} inputs",
             c.input_count());
  c.expect_type(kYZero, kByteTypes);
  expect_quantization(c, kYZero, kYScale, kYZero);
  bool ranked = true;
  for (size_t i = kFirst; i < c.input_count(); i += 3) {
    if (!c.has_input(i) || !c.has_input(i + 1)) c.reject("input {} is missing", c.has_input(i) ? i + 1 : i);
    c.expect_same_type(kYZero, i);
    expect_quantization(c, i, i + 1, i + 2);
    ranked = ranked && c.ranked(i);
  }
  if (!ranked) return c.set_unranked_output(0, c.type(kYZero));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<ConcatAttrs>().axis, c.rank(kFirst)));
  std::vector<Dim> dims(c.dims(kFirst).begin(), c.dims(kFirst).end());
  for (size_t i = kFirst + 3; i < c.input_count(); i += 3) {
    c.expect_rank(i, dims.size(), dims.size());
    for (size_t d = 0; d < dims.size(); ++d)
      dims[d] = d == axis ? dims[d] + c.dims(i)[d] : unify(c, dims[d], c.dims(i)[d]);
  }
  c.set_output(0, c.type(kYZero), dims);
}

void run(const RunContext& c) {
  const TensorView& y = c.outputs[0];
  const auto rank = static_cast<int64_t>(y.rank());
  const int64_t signed_axis = c.attrs<ConcatAttrs>().axis;
  const auto axis = static_cast<size_t>(signed_axis < 0 ? signed_axis + rank : signed_axis);
  const int64_t row = y.dims[axis] * stride_of(y.dims, axis);
  const Quantization to = read_quantization(c, kYScale, kYZero);
  int64_t column = 0;
  for (size_t i = kFirst; i < c.inputs.size(); i += 3) {
    const TensorView& x = c.inputs[i];
    const ByteTable table(x.type, read_quantization(c, i + 1, i + 2), to, [](float value) { return value; });
    const int64_t length = x.dims[axis] * stride_of(x.dims, axis);
    for (int64_t r = 0; length > 0 && r < x.elements() / length; ++r)
      kernels::apply_byte_table(x.as<uint8_t>() + r * length, table.values, length,
                                y.as<uint8_t>() + r * row + column, c.threads);
    column += length;
  }
}

void layout(LayoutContext& c) {
  if (!c.ranked(kFirst)) return;
  c.either({});
  for (size_t i = kFirst; i < c.input_count(); i += 3) c.make_port(i);
  const int64_t axis = c.attrs<ConcatAttrs>().axis;
  const size_t rank = c.rank(kFirst);
  c.changes().set("axis", LayoutContext::place(axis < 0 ? axis + static_cast<int64_t>(rank) : axis, rank));
}

}  // namespace

extern const OpDef op_qlinear_concat = {
    .domain = kMicrosoftDomain,
    .name = "QLinearConcat",
    .inputs = {3, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout,
};

}  // namespace plimsoll
