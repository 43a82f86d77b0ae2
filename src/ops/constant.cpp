#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

// The attributes of a Constant are its value: a view of the attribute's own data where it can be.
template <typename T>
TensorView view_of(AttrContext& c, ElementType type, std::span<const T> values, bool scalar) {
  const std::vector<int64_t> dims(scalar ? 0 : 1, static_cast<int64_t>(values.size()));
  const std::span<T> copy = c.arena().copy(values);
  return {reinterpret_cast<std::byte*>(copy.data()), type, false, c.arena().copy(dims)};
}

TensorView view_of_texts(AttrContext& c, std::span<const std::string_view> texts, bool scalar) {
  std::vector<StringRef> refs;
  for (std::string_view text : texts) refs.push_back({text.data(), text.size()});
  return view_of<StringRef>(c, ElementType::kString, refs, scalar);
}

// The place of the i-th value in the dense tensor, from linear or from per-axis indices.
int64_t dense_position(const AttrContext& c, const SparseData& sparse, int64_t i) {
  const TensorView indices = sparse.indices.view();
  const int64_t total = count_of(sparse.dims);
  int64_t position = 0;
  if (indices.rank() == 1) {
    position = index_at(indices, i);
  } else {
    const auto rank = static_cast<int64_t>(sparse.dims.size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t index = index_at(indices, i * rank + axis), dim = sparse.dims[static_cast<size_t>(axis)];
      if (index < 0 || index >= dim) c.reject("sparse_value: index {} is outside [0, {})", index, dim);
      position = position * dim + index;
    }
  }
  if (position < 0 || position >= total)
    c.reject("sparse_value: index {} is outside [0, {})", position, total);
  return position;
}

TensorView densify(AttrContext& c, const SparseData& sparse) {
  const TensorView values = sparse.values.view();
  const TensorView indices = sparse.indices.view();
  if (!kAllTypes.contains(values.type) || indices.type != ElementType::kInt64)
    c.reject("sparse_value: values of type {} with indices of type {}", element_type_name(values.type),
             element_type_name(indices.type));
  int64_t total = 1;
  for (int64_t dim : sparse.dims) {
    if (dim < 0) c.reject("sparse_value: shape {} is negative", to_string(sparse.dims));
    total = checked_mul(total, dim);
  }
  const int64_t count = values.elements();
  const int64_t per_value = indices.rank() == 2 ? static_cast<int64_t>(sparse.dims.size()) : 1;
  if (indices.rank() > 2 || indices.elements() != checked_mul(count, per_value))
    c.reject("sparse_value: {} values, but indices of shape {}", count, to_string(indices.dims));
  const size_t width = width_of(values.type);
  const auto bytes = static_cast<size_t>(checked_mul(total, static_cast<int64_t>(width)));
  auto* dense = static_cast<std::byte*>(c.arena().allocate(std::max<size_t>(bytes, 1), 16));
  std::memset(dense, 0, bytes);
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(dense + static_cast<size_t>(dense_position(c, sparse, i)) * width,
                values.data + static_cast<size_t>(i) * width, width);
  return {dense, values.type, false, sparse.dims};
}

TensorView read_value(AttrContext& c) {
  if (const TensorData* tensor = c.tensor("value")) return tensor->view();
  if (const Attribute* a = c.find("sparse_value", AttributeType::kSparseTensor)) {
    if (a->sparse == nullptr) c.reject("sparse_value is empty");
    return densify(c, *a->sparse);
  }
  if (const Attribute* a = c.find("value_int", AttributeType::kInt))
    return view_of<int64_t>(c, ElementType::kInt64, {&a->i, 1}, true);
  if (const Attribute* a = c.find("value_ints", AttributeType::kInts))
    return view_of<int64_t>(c, ElementType::kInt64, a->ints, false);
  if (const Attribute* a = c.find("value_float", AttributeType::kFloat))
    return view_of<float>(c, ElementType::kFloat, {&a->f, 1}, true);
  if (const Attribute* a = c.find("value_floats", AttributeType::kFloats))
    return view_of<float>(c, ElementType::kFloat, a->floats, false);
  if (const Attribute* a = c.find("value_string", AttributeType::kString))
    return view_of_texts(c, {&a->s, 1}, true);
  if (const Attribute* a = c.find("value_strings", AttributeType::kStrings))
    return view_of_texts(c, a->strings, false);
  c.reject("expected one of the attributes value, sparse_value, value_int, ..., found none");
}

const void* attrs(AttrContext& c) {
  return c.arena().make<TensorView>(read_value(c));
}

void infer(InferContext& c) {
  const TensorView& value = c.attrs<TensorView>();
  std::vector<Dim> dims(value.dims.begin(), value.dims.end());
  Facts facts;
  facts.type = {ValueKind::kTensor, value.type, ElementType::kUndefined, true, c.arena().copy(dims), nullptr};
  facts.constant = &value;
  c.set_output_facts(0, facts);
}

void run(const RunContext& c) {
  const TensorView& value = c.attrs<TensorView>();
  kernels::copy_bytes(c.outputs[0].data, value.data, value.bytes());
}

}  // namespace

extern const OpDef op_constant = {
    .name = "Constant",
    .inputs = {0, 0},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
