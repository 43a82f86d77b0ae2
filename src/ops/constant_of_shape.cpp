#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

struct Attrs {
  ElementType type = ElementType::kFloat;
  alignas(16) std::byte value[16] = {};
};

constexpr TypeSet kValueTypes = kViewTypes;

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  const TensorData* value = c.tensor("value");
  if (value == nullptr) return a;
  if (!kValueTypes.contains(value->type))
    c.reject("value: type {} is not allowed", element_type_name(value->type));
  if (value->view().elements() != 1)
    c.reject("value: expected one element, found shape {}", to_string(value->dims));
  a->type = value->type;
  std::memcpy(a->value, value->bytes.data(), value->bytes.size());
  return a;
}

// The number of elements, if it is small enough that their values are worth knowing.
std::optional<size_t> few_elements(std::span<const Dim> dims) {
  const Dim count = product(dims);
  if (!count.is_constant() || count.value() > static_cast<int64_t>(InferContext::kMaxKnownValues)) return {};
  return static_cast<size_t>(count.value());
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kInt64));
  const Attrs& a = c.attrs<Attrs>();
  const auto dims = c.values(0);
  if (!dims) return set_output_shaped_by(c, a.type, 0);
  c.set_output(0, a.type, *dims);
  const auto count = few_elements(*dims);
  if (!count || !kIndexTypes.contains(a.type)) return;
  int64_t value = 0;
  std::memcpy(&value, a.value, sizeof(value));
  if (a.type == ElementType::kInt32) value = static_cast<int32_t>(value);
  c.set_values(0, std::vector<Dim>(*count, value));
}

void run(const RunContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (const int bits = element_bits(a.type); bits < 8) {
    const TensorView& y = c.outputs[0];
    return fill_packed(y.data, bits, y.elements(), packed_bits(a.value, bits, 0));
  }
  kernels::fill(c.outputs[0].data, c.outputs[0].elements(), a.value, width_of(a.type));
}

}  // namespace

extern const OpDef op_constant_of_shape = {
    .name = "ConstantOfShape",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
