#include <cmath>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = -1;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", -1);
  return a;
}

// A number of any type as an integer; what has no integer is outside every range.
int64_t integer_at(const TensorView& view, int64_t i) {
  return visit_numeric(view.type, [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(static_cast<void*>(&value), view.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(value);
    } else {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const auto wide = static_cast<Wide>(value);
      return std::fabs(wide) < 9e18 ? static_cast<int64_t>(wide) : INT64_MIN;
    }
  });
}

Dim known_depth(InferContext& c) {
  if (const auto values = c.values(1); values && values->size() == 1) return (*values)[0];
  const TensorView* data = c.constant(1);
  if (data == nullptr) return c.unknown("depth");
  if (data->elements() != 1) c.reject("depth: expected one number, found shape {}", to_string(data->dims));
  return integer_at(*data, 0);
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  c.expect_type(1, kNumericTypes);
  c.expect_type(2, kAllTypes);
  const auto length = known_length(c, 2);
  if (length && *length != 2) c.reject("values: expected off and on, found shape {}", to_string(c.dims(2)));
  const Dim depth = known_depth(c);
  if (depth.is_constant() && depth.value() < 0) c.reject("depth {} is negative", depth.value());
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(2));
  const int64_t axis = c.axis(c.attrs<Attrs>().axis, c.rank(0) + 1);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  dims.insert(dims.begin() + axis, depth);
  c.set_output(0, c.type(2), dims);
}

void run(const RunContext& c) {
  const TensorView& indices = c.inputs[0];
  const TensorView& out = c.outputs[0];
  const auto width = static_cast<int64_t>(width_of(out.type));
  const std::byte* off = c.inputs[2].data;
  kernels::fill(out.data, out.elements(), off, static_cast<size_t>(width));
  int64_t axis = c.attrs<Attrs>().axis;
  if (axis < 0) axis += static_cast<int64_t>(out.rank());
  const int64_t depth = out.dims[static_cast<size_t>(axis)];
  const int64_t inner = stride_of(out.dims, static_cast<size_t>(axis)), count = indices.elements();
  for (int64_t n = 0; n < count; ++n) {
    int64_t index = integer_at(indices, n);
    if (index < -depth || index >= depth) continue;
    if (index < 0) index += depth;
    const int64_t at = (n / inner * depth + index) * inner + n % inner;
    std::memcpy(out.data + at * width, off + width, static_cast<size_t>(width));
  }
}

void gradient(GradientContext& c) {
  // Where it is on, and everywhere.
  const float off_on[] = {0, 1};
  const int64_t two[] = {2};
  Edge* values = c.build.reals("off_on", c.type(2) == ElementType::kDouble ? ElementType::kFloat : c.type(2),
                               two, off_on);
  if (c.type(2) == ElementType::kDouble)
    values = c.op("Cast", {values}, c.attributes().set("to", static_cast<int64_t>(c.type(2))));
  Edge* mask = c.op("OneHot", {c.in(0), c.in(1), values}, c.attributes().set("axis", c.attrs<Attrs>().axis));
  const AttributeList to_one = c.attributes().set("keepdims", int64_t{0});
  Edge* on = c.op("ReduceSum", {c.op("Mul", {c.gradient(), mask})}, to_one);
  Edge* off = c.op("Sub", {c.op("ReduceSum", {c.gradient()}, to_one), on});
  Edge* axis = c.build.integers({0});
  c.set(2, c.op("Concat", {c.op("Unsqueeze", {off, axis}), c.op("Unsqueeze", {on, axis})},
                c.attributes().set("axis", int64_t{0})));
}

}  // namespace

extern const OpDef op_one_hot = {
    .name = "OneHot",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
