#include "ops/sequences.h"

#include <algorithm>

#include "ops/movement.h"

namespace plimsoll {
namespace {

Dim common_size(InferContext& c, Dim a, Dim b, std::vector<Dim>* opened) {
  if (a == b) return a;
  if (opened == nullptr) return c.unknown("");
  if (std::find(opened->begin(), opened->end(), a) != opened->end()) return a;
  opened->push_back(c.unknown(""));
  return opened->back();
}

TypeInfo common_tensor(InferContext& c, const TypeInfo& a, const TypeInfo& b, std::vector<Dim>* opened) {
  TypeInfo common = a;
  common.ranked = a.ranked && b.ranked && a.rank() == b.rank();
  if (!common.ranked) {
    common.dims = {};
    return common;
  }
  std::vector<Dim> dims(a.dims.begin(), a.dims.end());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = common_size(c, dims[i], b.dims[i], opened);
  common.dims = c.arena().copy(dims);
  return common;
}

[[noreturn]] void reject_position(const Node& node, ErrorCode code, int64_t position, size_t length,
                                  bool end) {
  const auto n = static_cast<int64_t>(length);
  fail(code, "{}: expected a position from {} to {} in a sequence of {}, found {}", node.label(), -n,
       end ? n : n - 1, n, position);
}

size_t checked_position(const Node& node, ErrorCode code, int64_t position, size_t length, bool end) {
  const auto n = static_cast<int64_t>(length);
  if (position < -n || position >= n + (end ? 1 : 0)) reject_position(node, code, position, length, end);
  return static_cast<size_t>(position < 0 ? position + n : position);
}

}  // namespace

std::optional<TypeInfo> common_type(InferContext& c, const TypeInfo& a, const TypeInfo& b,
                                    std::vector<Dim>* opened) {
  if (a.kind != b.kind) {
    const bool a_holds_b = a.kind == ValueKind::kOptional && a.element != nullptr;
    const bool b_holds_a = b.kind == ValueKind::kOptional && b.element != nullptr;
    if (!a_holds_b && !b_holds_a) return std::nullopt;
    const auto inner =
        a_holds_b ? common_type(c, *a.element, b, opened) : common_type(c, a, *b.element, opened);
    if (!inner || inner->kind == ValueKind::kOptional) return std::nullopt;
    return list_of(c, ValueKind::kOptional, *inner);
  }
  if (a.element == nullptr || b.element == nullptr) {
    if (a.type != b.type || a.element != b.element) return std::nullopt;
    return common_tensor(c, a, b, opened);
  }
  const auto element = common_type(c, *a.element, *b.element, opened);
  if (!element || a.key != b.key) return std::nullopt;
  TypeInfo common = list_of(c, a.kind, *element);
  common.key = a.key;
  return common;
}

bool same_type(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != b.kind || a.type != b.type || a.key != b.key || a.ranked != b.ranked) return false;
  if ((a.element == nullptr) != (b.element == nullptr)) return false;
  if (a.element != nullptr && !same_type(*a.element, *b.element)) return false;
  return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
}

TypeInfo one_of(InferContext& c, const TypeInfo& element, bool symbols) {
  TypeInfo one = element;
  if (element.element != nullptr) {
    TypeInfo* inner = c.arena().make<TypeInfo>();
    *inner = one_of(c, *element.element, symbols);
    one.element = inner;
  }
  std::vector<Dim> dims(element.dims.begin(), element.dims.end());
  for (Dim& d : dims) {
    if (!d.is_constant() && (!symbols || d.depends_on_data())) d = c.unknown("");
  }
  one.dims = c.arena().copy(dims);
  return one;
}

TypeInfo list_of(InferContext& c, ValueKind kind, const TypeInfo& element) {
  TypeInfo list;
  list.kind = kind;
  TypeInfo* copy = c.arena().make<TypeInfo>();
  *copy = element;
  list.element = copy;
  return list;
}

const TypeInfo& expect_sequence(InferContext& c, size_t i) {
  const TypeInfo& type = c.input(i).type;
  if (type.kind != ValueKind::kSequence || type.element == nullptr)
    c.reject("input {} ('{}'): expected a sequence, found {}", i, c.node().inputs[i]->name, to_string(type));
  return *type.element;
}

void expect_position(InferContext& c, size_t i) {
  c.expect_type(i, kIndexTypes);
  c.expect_rank(i, 0, 1);
  if (c.ranked(i) && c.rank(i) == 1 && c.dims(i)[0].is_constant() && c.dims(i)[0].value() != 1)
    c.reject("input {} ('{}'): expected one position, found shape {}", i, c.node().inputs[i]->name,
             to_string(c.dims(i)));
}

std::optional<size_t> known_position(const NodeContext& c, size_t i, size_t length, bool end) {
  const auto values = c.integers(i);
  if (!values || values->size() != 1) return std::nullopt;
  return checked_position(c.node(), ErrorCode::kInvalidModel, (*values)[0], length, end);
}

size_t position_in(const ValueRun& run, size_t i, size_t length, bool end) {
  const TensorView position = run.input(i);
  if (position.elements() != 1)
    fail(ErrorCode::kInvalidArgument, "{}: expected one position, found shape {}", run.node().label(),
         to_string(position.dims));
  return checked_position(run.node(), ErrorCode::kInvalidArgument, index_at(position, 0), length, end);
}

TensorView sequence_at(const ValueRun& run, size_t i) {
  const TensorView sequence = run.input(i);
  if (sequence.kind != ValueKind::kSequence)
    fail(ErrorCode::kInvalidArgument, "{}: input {}: expected a sequence, found an optional without a value",
         run.node().label(), i);
  return sequence;
}

Edge* emit_with_axis(GraphBuilder& builder, std::string_view op_type, Edge* edge, int64_t axis) {
  if (builder.graph().opset("") >= 13) return builder.op(op_type, {edge, builder.integers({axis})});
  AttributeList attributes = builder.attributes();
  attributes.set("axes", std::span<const int64_t>(&axis, 1));
  return builder.op(op_type, {edge}, attributes);
}

}  // namespace plimsoll
