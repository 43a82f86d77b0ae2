#include <algorithm>
#include <cstring>

#include "graph/op_def.h"

namespace plimsoll {

void reject_node(const Node& node, const std::string& what) {
  fail(ErrorCode::kInvalidModel, "{}: {}", node.label(), what);
}

void warn_of_node(const Node& node, const std::string& what) {
  node.graph->warn(fmt::format("{}: {}", node.label(), what));
}

// ---- AttrContext --------------------------------------------------------------------------------

const Attribute* AttrContext::find(std::string_view name, AttributeType type) {
  asked_.push_back(name);
  const Attribute* attribute = node_.attribute(name);
  if (attribute != nullptr && attribute->type != type)
    reject("attribute '{}': expected type {}, found {}", name, static_cast<int>(type),
           static_cast<int>(attribute->type));
  return attribute;
}

bool AttrContext::has(std::string_view name) {
  asked_.push_back(name);
  return node_.attribute(name) != nullptr;
}

namespace {
template <typename Context>
const Attribute& required(Context& context, std::string_view name, AttributeType type) {
  const Attribute* attribute = context.find(name, type);
  if (attribute == nullptr) context.reject("attribute '{}' is missing", name);
  return *attribute;
}
}  // namespace

int64_t AttrContext::integer(std::string_view name) {
  return required(*this, name, AttributeType::kInt).i;
}
int64_t AttrContext::integer(std::string_view name, int64_t fallback) {
  const Attribute* attribute = find(name, AttributeType::kInt);
  return attribute != nullptr ? attribute->i : fallback;
}
float AttrContext::real(std::string_view name) {
  return required(*this, name, AttributeType::kFloat).f;
}
float AttrContext::real(std::string_view name, float fallback) {
  const Attribute* attribute = find(name, AttributeType::kFloat);
  return attribute != nullptr ? attribute->f : fallback;
}
std::string_view AttrContext::text(std::string_view name) {
  return required(*this, name, AttributeType::kString).s;
}
std::string_view AttrContext::text(std::string_view name, std::string_view fallback) {
  const Attribute* attribute = find(name, AttributeType::kString);
  return attribute != nullptr ? attribute->s : fallback;
}
std::span<const int64_t> AttrContext::integers(std::string_view name) {
  const Attribute* attribute = find(name, AttributeType::kInts);
  return attribute != nullptr ? attribute->ints : std::span<const int64_t>();
}
std::span<const float> AttrContext::reals(std::string_view name) {
  const Attribute* attribute = find(name, AttributeType::kFloats);
  return attribute != nullptr ? attribute->floats : std::span<const float>();
}
std::span<const std::string_view> AttrContext::texts(std::string_view name) {
  const Attribute* attribute = find(name, AttributeType::kStrings);
  return attribute != nullptr ? attribute->strings : std::span<const std::string_view>();
}
const TensorData* AttrContext::tensor(std::string_view name) {
  const Attribute* attribute = find(name, AttributeType::kTensor);
  return attribute != nullptr ? attribute->tensor : nullptr;
}
Graph* AttrContext::body(std::string_view name) {
  return required(*this, name, AttributeType::kGraph).graph;
}

bool AttrContext::was_asked(std::string_view name) const {
  return std::find(asked_.begin(), asked_.end(), name) != asked_.end();
}

// ---- NodeContext, InferContext
// -----------------------------------------------------------------------------

namespace {

// Calls f(value) for every element; the data may be unaligned.
template <typename T, typename F>
void for_each_unaligned(const TensorView& view, F&& f) {
  const int64_t count = view.elements();
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, view.data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    f(value);
  }
}

}  // namespace

std::optional<std::vector<int64_t>> NodeContext::integers(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const Facts& facts = inputs_[i];
  std::vector<int64_t> result;
  if (facts.values) {
    for (Dim d : *facts.values) {
      if (!d.is_constant()) return std::nullopt;
      result.push_back(d.value());
    }
    return result;
  }
  if (facts.constant == nullptr || !is_integer(facts.constant->type)) return std::nullopt;
  if (static_cast<size_t>(facts.constant->elements()) > InferContext::kMaxKnownValues) return std::nullopt;
  visit_integer(facts.constant->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_unaligned<T>(*facts.constant, [&](T value) { result.push_back(static_cast<int64_t>(value)); });
  });
  return result;
}

int64_t tensor_bytes(const NodeContext& c) {
  int64_t bytes = 0;
  const auto add = [&](const TypeInfo& type) {
    const int64_t more = element_bytes(type.type, product(type.dims).value());
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  };
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.has_input(i) && c.input(i).is_concrete()) add(c.input(i).type);
  }
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (c.has_output(i) && c.output(i).is_concrete()) add(c.output(i).type);
  }
  return bytes;
}

Cost cost_of(const NodeContext& c) {
  if (c.node().op->cost != nullptr) return c.node().op->cost(c);
  if (c.node().op->control_flow) return {};  // its bodies have costs of their own
  Cost cost{0, tensor_bytes(c)};
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i) || !c.output(i).is_concrete()) continue;
    const int64_t more = product(c.output(i).type.dims).value();
    if (__builtin_add_overflow(cost.operations, more, &cost.operations)) cost.operations = INT64_MAX;
  }
  return cost;
}

std::optional<std::span<const Dim>> InferContext::values(size_t i) {
  if (!has_input(i)) return std::nullopt;
  const Facts& facts = inputs_[i];
  if (facts.values) return facts.values;
  if (facts.constant == nullptr || !is_integer(facts.constant->type)) return std::nullopt;
  if (static_cast<size_t>(facts.constant->elements()) > kMaxKnownValues) return std::nullopt;
  std::vector<Dim> found;
  visit_integer(facts.constant->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_unaligned<T>(*facts.constant, [&](T value) { found.push_back(static_cast<int64_t>(value)); });
  });
  return arena_.copy(found);
}

std::optional<std::vector<float>> InferContext::reals(size_t i) {
  const TensorView* data = constant(i);
  if (data == nullptr || !is_float(data->type)) return std::nullopt;
  std::vector<float> result;
  visit_float(data->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_unaligned<T>(*data, [&](T value) { result.push_back(static_cast<float>(value)); });
  });
  return result;
}

void InferContext::expect_type(size_t i, TypeSet set) const {
  if (!has_input(i)) reject("input {} is missing", i);
  if (inputs_[i].type.kind != ValueKind::kTensor)
    reject("input {} ('{}'): expected a tensor, found {}", i, node_.inputs[i]->name,
           to_string(inputs_[i].type));
  if (!set.contains(type(i)))
    reject("input {} ('{}'): type {} is not allowed", i, node_.inputs[i]->name, element_type_name(type(i)));
}

void InferContext::expect_same_type(size_t i, size_t j) const {
  if (type(i) != type(j))
    reject("inputs {} and {}: expected one type, found {} and {}", i, j, element_type_name(type(i)),
           element_type_name(type(j)));
}

void InferContext::expect_rank(size_t i, size_t least, size_t most) const {
  if (ranked(i) && (rank(i) < least || rank(i) > most))
    reject("input {} ('{}'): expected a rank from {} to {}, found shape {}", i, node_.inputs[i]->name, least,
           most, to_string(dims(i)));
}

int64_t InferContext::axis(int64_t axis, size_t rank) const {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) reject("axis {} is outside [{}, {})", axis, -r, r);
  return axis < 0 ? axis + r : axis;
}

void InferContext::set_output(size_t i, ElementType type, std::span<const Dim> dims) {
  if (!has_output(i)) return;
  if (dims.size() > kMaxRank)
    reject("output {} would have {} dimensions, more than {}", i, dims.size(), kMaxRank);
  // Whatever is computed from a shape that passed here (elements, bits, strides) fits 63 bits.
  int64_t bits = std::max(element_bits(type), 8);
  for (Dim d : dims) {
    if (!d.is_constant()) continue;
    if (d.value() < 0) reject("output {} would have shape {}", i, to_string(dims));
    if (__builtin_mul_overflow(bits, std::max<int64_t>(d.value(), 1), &bits))
      reject("output {} would have shape {}, which no memory holds", i, to_string(dims));
  }
  outputs_[i] = Facts{};
  outputs_[i].type = {ValueKind::kTensor, type, ElementType::kUndefined, true, arena_.copy(dims), nullptr};
}

void InferContext::set_unranked_output(size_t i, ElementType type) {
  if (!has_output(i)) return;
  outputs_[i] = Facts{};
  outputs_[i].type.type = type;
}

void InferContext::set_output_facts(size_t i, const Facts& facts) {
  if (has_output(i)) outputs_[i] = facts;
}

void InferContext::set_output_type(size_t i, const TypeInfo& type, std::optional<Dim> length) {
  if (!has_output(i)) return;
  outputs_[i] = Facts{};
  outputs_[i].type = type;
  outputs_[i].length = length;
}

void InferContext::set_values(size_t i, std::span<const Dim> values) {
  if (has_output(i) && values.size() <= kMaxKnownValues) outputs_[i].values = arena_.copy(values);
}

Dim InferContext::broadcast(Dim a, Dim b) const {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_constant() && b.is_constant())
    reject("dimensions {} and {} cannot be broadcast", a.value(), b.value());
  // One of the two is 1 or both are equal, so a constant above 1 decides, and otherwise the larger.
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return max(a, b);
}

std::vector<Dim> InferContext::broadcast(std::span<const Dim> a, std::span<const Dim> b) const {
  std::vector<Dim> result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t from_end = result.size() - i;
    const Dim x = from_end <= a.size() ? a[a.size() - from_end] : Dim(1);
    const Dim y = from_end <= b.size() ? b[b.size() - from_end] : Dim(1);
    result[i] = broadcast(x, y);
  }
  return result;
}

// ---- SelectContext ------------------------------------------------------------------------------

bool SelectContext::is_concrete() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (has_input(i) && !inputs_[i].is_concrete()) return false;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (has_output(i) && !outputs_[i].is_concrete()) return false;
  }
  return true;
}

}  // namespace plimsoll
