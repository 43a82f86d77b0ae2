#include <algorithm>

#include "base/checked.h"
#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
  bool stack = false;  // along a new axis
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis");
  const int64_t stack = c.integer("new_axis", 0);
  if (stack != 0 && stack != 1) c.reject("attribute 'new_axis': expected 0 or 1, found {}", stack);
  a->stack = stack != 0;
  return a;
}

// The axis of the result, whose elements have this rank. Throws if it is outside.
size_t result_axis(const Node& node, const Attrs& a, size_t rank, ErrorCode code) {
  const auto r = static_cast<int64_t>(rank) + (a.stack ? 1 : 0);
  if (a.axis < -r || a.axis >= r) fail(code, "{}: axis {} is outside [{}, {})", node.label(), a.axis, -r, r);
  return static_cast<size_t>(a.axis < 0 ? a.axis + r : a.axis);
}

void infer(InferContext& c) {
  const TypeInfo& element = expect_sequence(c, 0);
  if (element.kind != ValueKind::kTensor || !kAllTypes.contains(element.type))
    c.reject("expected a sequence of tensors, found {}", to_string(c.input(0).type));
  const std::optional<Dim> length = c.input(0).length;
  if (length && *length == Dim(0)) c.reject("expected a sequence with elements, found an empty one");
  if (!element.ranked) return c.set_unranked_output(0, element.type);
  const Attrs& a = c.attrs<Attrs>();
  const size_t axis = result_axis(c.node(), a, element.rank(), ErrorCode::kInvalidModel);
  // Sizes that differ between the elements must agree where they are not put together.
  const TypeInfo one = one_of(c, element);
  std::vector<Dim> dims(one.dims.begin(), one.dims.end());
  const Dim count = length ? *length : c.unknown("");
  if (a.stack) {
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), count);
  } else {
    const bool alike = !element.dims[axis].depends_on_data();
    dims[axis] = alike && length ? element.dims[axis] * count : c.unknown("");
  }
  c.set_output(0, element.type, dims);
}

// Whether facts tell that the elements do not go together: the error belongs to the run, should it come
// there.
bool may_fit(std::span<Edge* const> list, const Attrs& a, size_t axis) {
  const TypeInfo& first = list[0]->facts.type;
  return std::all_of(list.begin(), list.end(), [&](const Edge* edge) {
    const TypeInfo& type = edge->facts.type;
    if (!type.ranked || type.rank() != first.rank()) return false;
    for (size_t d = 0; d < type.rank(); ++d) {
      const bool differ =
          type.dims[d].is_constant() && first.dims[d].is_constant() && type.dims[d] != first.dims[d];
      if (differ && (a.stack || d != axis)) return false;
    }
    return true;
  });
}

void lower(LowerContext& c) {
  const KnownElements elements = c.elements(0);
  if (elements == nullptr) return;
  const Attrs& a = c.attrs<Attrs>();
  const TypeInfo& element = *c.input(0).type.element;
  if (!element.ranked) return;
  std::vector<Edge*> list = elements();
  if (list.empty()) return;
  if (!may_fit(list, a, result_axis(c.node(), a, element.rank(), ErrorCode::kInvalidModel))) return;
  const auto axis = static_cast<int64_t>(result_axis(c.node(), a, element.rank(), ErrorCode::kInvalidModel));
  GraphBuilder& builder = c.builder();
  if (a.stack) {
    for (Edge*& edge : list) edge = emit_with_axis(builder, "Unsqueeze", edge, axis);
  }
  AttributeList attributes = builder.attributes();
  attributes.set("axis", axis);
  c.replace(0, builder.emit("", "Concat", list, attributes.list())->outputs[0]);
}

// The shape of the whole; throws if the elements do not fit together.
std::vector<int64_t> result_dims(const ValueRun& run, const Attrs& a, std::span<const TensorView> items,
                                 size_t axis) {
  std::vector<int64_t> dims(items[0].dims.begin(), items[0].dims.end());
  int64_t total = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    bool fits = items[i].rank() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d)
      fits = items[i].dims[d] == dims[d] || (!a.stack && d == axis);
    if (!fits)
      fail(ErrorCode::kInvalidArgument,
           "{}: elements 0 and {} of the sequence: shapes {} and {} do not fit together", run.node().label(),
           i, to_string(items[0].dims), to_string(items[i].dims));
    total = checked_add(total, a.stack ? 1 : items[i].dims[axis]);
  }
  if (a.stack) dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  dims[axis] = total;
  return dims;
}

void run_values(ValueRun& run) {
  const auto& a = *static_cast<const Attrs*>(run.node().attrs);
  const std::span<const TensorView> items = sequence_at(run, 0).items();
  if (items.empty())
    fail(ErrorCode::kInvalidArgument, "{}: expected a sequence with elements, found an empty one",
         run.node().label());
  const size_t axis = result_axis(run.node(), a, items[0].rank(), ErrorCode::kInvalidArgument);
  const std::vector<int64_t> dims = result_dims(run, a, items, axis);
  const TensorView whole = run.make_output(0, items[0].type, dims);
  const size_t width = width_of(whole.type);
  const int64_t outer = count_of(whole.dims.first(axis)), inner = count_of(whole.dims.subspan(axis + 1));
  std::byte* target = whole.data;
  for (const TensorView& item : items) {
    const int64_t row = (a.stack ? 1 : item.dims[axis]) * inner;
    kernels::CopyShape copy;
    copy.add(row, 1, 1);
    copy.add(outer, row, whole.dims[axis] * inner);
    kernels::strided_copy(target, item.data, copy, width, run.threads());
    target += row * static_cast<int64_t>(width);
  }
}

}  // namespace

extern const OpDef op_concat_from_sequence = {
    .name = "ConcatFromSequence",
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
