#include "ops/movement.h"

#include <algorithm>
#include <cstring>

#include "graph/gradient.h"

namespace plimsoll {

int64_t count_of(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

int64_t stride_of(std::span<const int64_t> dims, size_t axis) {
  return count_of(dims.subspan(axis + 1));
}

std::optional<std::vector<Dim>> known_values(const Facts& facts) {
  if (facts.values) return std::vector<Dim>(facts.values->begin(), facts.values->end());
  const TensorView* data = facts.constant;
  if (data == nullptr || !kIndexTypes.contains(data->type)) return std::nullopt;
  if (static_cast<size_t>(data->elements()) > InferContext::kMaxKnownValues) return std::nullopt;
  std::vector<Dim> result;
  for (int64_t i = 0; i < data->elements(); ++i) result.push_back(index_at(*data, i));
  return result;
}

int64_t index_at(const TensorView& view, int64_t i) {
  auto read = [&](auto value) -> int64_t {
    std::memcpy(&value, view.data + i * static_cast<int64_t>(sizeof(value)), sizeof(value));
    return value;
  };
  return view.type == ElementType::kInt32 ? read(int32_t{}) : read(int64_t{});
}

std::optional<size_t> known_length(const InferContext& c, size_t input) {
  if (!c.ranked(input)) return std::nullopt;
  if (c.rank(input) > 1)
    c.reject("input {}: expected one dimension, found shape {}", input, to_string(c.dims(input)));
  if (c.rank(input) == 0) return 1;
  const Dim length = c.dims(input)[0];
  if (!length.is_constant()) return std::nullopt;
  return static_cast<size_t>(length.value());
}

std::vector<Dim> unknown_dims(InferContext& c, size_t rank) {
  if (rank > InferContext::kMaxRank) c.reject("{} dimensions are more than {}", rank, InferContext::kMaxRank);
  std::vector<Dim> dims(rank);
  for (Dim& d : dims) d = c.unknown("");
  return dims;
}

void set_output_shaped_by(InferContext& c, ElementType type, size_t shape_input) {
  const auto length = known_length(c, shape_input);
  if (!length) return c.set_unranked_output(0, type);
  c.set_output(0, type, unknown_dims(c, *length));
}

std::vector<int64_t> resolve_axes(const InferContext& c, std::span<const int64_t> axes, size_t rank) {
  std::vector<int64_t> result;
  for (int64_t axis : axes) {
    const int64_t resolved = c.axis(axis, rank);
    if (std::find(result.begin(), result.end(), resolved) != result.end())
      c.reject("axis {} is named twice in {}", axis, to_string(axes));
    result.push_back(resolved);
  }
  return result;
}

std::optional<std::vector<int64_t>> attribute_or_input(InferContext& c, std::span<const int64_t> attribute,
                                                       size_t input) {
  if (!c.has_input(input)) return std::vector<int64_t>(attribute.begin(), attribute.end());
  c.expect_type(input, kIndexTypes);
  known_length(c, input);
  return c.integers(input);
}

Dim unify(const NodeContext& c, Dim a, Dim b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) c.reject("dimensions {} and {} differ", a.value(), b.value());
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return a.depends_on_data() ? b : a;
}

void expect_dims(const InferContext& c, size_t i, const std::vector<Dim>& expected) {
  if (!c.has_input(i)) return;
  if (c.input(i).type.kind != ValueKind::kTensor)
    c.reject("input {}: expected a tensor, found {}", i, to_string(c.input(i).type));
  if (!c.ranked(i)) return;
  const auto found = c.dims(i);
  bool fits = found.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d)
    fits = !found[d].is_constant() || !expected[d].is_constant() || found[d] == expected[d];
  if (!fits) c.reject("input {}: expected shape {}, found {}", i, to_string(expected), to_string(found));
}

void expect_same_dims(const InferContext& c, size_t i, size_t j) {
  if (c.ranked(i)) expect_dims(c, j, {c.dims(i).begin(), c.dims(i).end()});
}

void alias_whole(AliasContext& c) {
  c.view(0);
}

void run_whole(const RunContext& c) {
  kernels::copy_bytes(c.outputs[0].data, c.inputs[0].data, c.outputs[0].bytes());
}

void gradient_whole(GradientContext& c) {
  const Facts& x = c.input(0);
  const bool may_be_empty =
      !x.is_concrete() || std::find(x.type.dims.begin(), x.type.dims.end(), Dim(0)) != x.type.dims.end();
  AttributeList attributes = c.attributes();
  if (may_be_empty) attributes.set("allowzero", int64_t{1});
  c.set(0, c.op("Reshape", {c.gradient(), c.shape_of(c.in(0))}, attributes));
}

}  // namespace plimsoll
