#include <algorithm>

#include "base/checked.h"
#include "ops/movement.h"
#include "ops/sequences.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
  bool keep = true;  // the axis, where no sizes are given
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  const int64_t keep = c.integer("keepdims", 1);
  if (keep != 0 && keep != 1) c.reject("attribute 'keepdims': expected 0 or 1, found {}", keep);
  a->keep = keep != 0 || c.node().input(1) != nullptr;
  return a;
}

// The sizes of the parts: listed, or equal but for the last.
class Parts {
 public:
  // One size for all: what remains is the last part's.
  Parts(int64_t total, int64_t size)
      : count_(static_cast<size_t>(ceil_div(total, size))), size_(size), total_(total) {}
  Parts(int64_t total, std::vector<int64_t> sizes)
      : count_(sizes.size()), total_(total), sizes_(std::move(sizes)) {}

  size_t count() const { return count_; }
  int64_t operator[](size_t i) const {
    if (!sizes_.empty()) return sizes_[i];
    return std::min(size_, total_ - static_cast<int64_t>(i) * size_);
  }

  // Throws unless the parts make up the whole.
  void check(const Node& node, ErrorCode code) const {
    int64_t sum = 0;
    for (int64_t size : sizes_) {
      if (size < 0) fail(code, "{}: expected sizes of 0 or more, found {}", node.label(), size);
      if (__builtin_add_overflow(sum, size, &sum)) fail(code, "{}: the sizes overflow", node.label());
    }
    if (!sizes_.empty() ? sum != total_ : count_ == 0 && total_ != 0)
      fail(code, "{}: expected sizes that add up to {}, found {}", node.label(), total_, to_string(sizes_));
  }

 private:
  size_t count_;
  int64_t size_ = 0, total_;
  std::vector<int64_t> sizes_;
};

// `sizes`: what input 1 has in it; `is_scalar`: it is one size for all.
Parts parts_of(const Node& node, int64_t total, std::vector<int64_t> sizes, bool is_scalar, ErrorCode code) {
  if (is_scalar && sizes[0] <= 0)
    fail(code, "{}: expected a size above 0 of each part, found {}", node.label(), sizes[0]);
  const Parts parts = is_scalar ? Parts(total, sizes[0]) : Parts(total, std::move(sizes));
  parts.check(node, code);
  return parts;
}

bool is_scalar(const NodeContext& c) {
  return !c.has_input(1) || (c.ranked(1) && c.rank(1) == 0);
}

// The parts, where facts tell them.
std::optional<Parts> known_parts(const NodeContext& c, Dim total) {
  if (!total.is_constant() || (c.has_input(1) && !c.ranked(1))) return std::nullopt;
  auto sizes = c.has_input(1) ? c.integers(1) : std::vector<int64_t>{1};
  if (!sizes) return std::nullopt;
  return parts_of(c.node(), total.value(), std::move(*sizes), is_scalar(c), ErrorCode::kInvalidModel);
}

std::optional<Dim> known_length(const NodeContext& c, Dim total) {
  if (!c.has_input(1)) return total;
  if (!c.ranked(1)) return std::nullopt;
  if (c.rank(1) == 1) return c.dims(1)[0];
  const auto sizes = c.integers(1);
  if (!sizes || sizes->size() != 1 || (*sizes)[0] <= 0) return std::nullopt;
  return ceil_div(total, Dim((*sizes)[0]));
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  if (c.has_input(1)) {
    c.expect_type(1, kIndexTypes);
    c.expect_rank(1, 0, 1);
  }
  TypeInfo element;
  element.type = c.type(0);
  if (!c.ranked(0)) return c.set_output_type(0, list_of(c, ValueKind::kSequence, element));
  const Attrs& a = c.attrs<Attrs>();
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  const Dim total = c.dims(0)[axis];
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  const auto parts = known_parts(c, total);
  dims[axis] = c.has_input(1) ? c.unknown("") : Dim(1);
  if (parts && parts->count() > 0 && c.has_input(1)) {
    bool equal = true;
    for (size_t i = 1; equal && i < parts->count(); ++i) equal = (*parts)[i] == (*parts)[0];
    if (equal) dims[axis] = (*parts)[0];
  }
  if (!a.keep) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  element.ranked = true;
  element.dims = c.arena().copy(dims);
  c.set_output_type(0, list_of(c, ValueKind::kSequence, element), known_length(c, total));
}

std::vector<Edge*> emit_parts(GraphBuilder& builder, Edge* whole, const Parts& parts, int64_t axis,
                              bool keep) {
  if (parts.count() == 0) return {};
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < parts.count(); ++i) sizes.push_back(parts[i]);
  AttributeList attributes = builder.attributes();
  attributes.set("axis", axis);
  std::vector<Edge*> inputs = {whole};
  if (builder.graph().opset("") < 13) {
    attributes.set("split", std::span<const int64_t>(sizes));
  } else {
    inputs.push_back(builder.integers(sizes));
  }
  const Node* split = builder.emit("", "Split", inputs, attributes.list(), sizes.size());
  std::vector<Edge*> elements(split->outputs.begin(), split->outputs.end());
  if (keep) return elements;
  for (Edge*& element : elements) element = emit_with_axis(builder, "Squeeze", element, axis);
  return elements;
}

void lower(LowerContext& c) {
  constexpr size_t kMostParts = 1024;  // more nodes and edges would cost more than they save
  if (!c.ranked(0)) return;
  const Attrs& a = c.attrs<Attrs>();
  const auto rank = static_cast<int64_t>(c.rank(0));
  const int64_t axis = a.axis < 0 ? a.axis + rank : a.axis;
  const auto parts = known_parts(c, c.dims(0)[static_cast<size_t>(axis)]);
  if (!parts || parts->count() > kMostParts) return;
  c.consists_of(0, [&builder = c.builder(), whole = c.node().inputs[0], parts = *parts, axis, keep = a.keep] {
    return emit_parts(builder, whole, parts, axis, keep);
  });
}

Parts parts_at_hand(const ValueRun& run, int64_t total) {
  const TensorView split = run.input(1);
  std::vector<int64_t> sizes = {1};
  if (split) {
    sizes.clear();
    for (int64_t i = 0; i < split.elements(); ++i) sizes.push_back(index_at(split, i));
  }
  return parts_of(run.node(), total, std::move(sizes), !split || split.rank() == 0,
                  ErrorCode::kInvalidArgument);
}

void run_values(ValueRun& run) {
  const auto& a = *static_cast<const Attrs*>(run.node().attrs);
  const TensorView whole = run.input(0);
  const auto rank = static_cast<int64_t>(whole.rank());
  if (a.axis < -rank || a.axis >= rank)
    fail(ErrorCode::kInvalidArgument, "{}: axis {} is outside [{}, {})", run.node().label(), a.axis, -rank,
         rank);
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + rank : a.axis);
  const Parts parts = parts_at_hand(run, whole.dims[axis]);
  const int64_t outer = count_of(whole.dims.first(axis)), inner = count_of(whole.dims.subspan(axis + 1));
  const size_t width = width_of(whole.type);
  const TensorView list =
      run.allocate_list(ValueKind::kSequence, whole.type, static_cast<int64_t>(parts.count()));
  std::vector<int64_t> dims(whole.dims.begin(), whole.dims.end());
  const std::byte* source = whole.data;
  for (size_t i = 0; i < parts.count(); ++i) {
    dims[axis] = parts[i];
    std::vector<int64_t> shape = dims;
    if (!a.keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    const TensorView part = run.allocate(whole.type, shape);
    const int64_t row = parts[i] * inner;
    kernels::CopyShape copy;
    copy.add(row, 1, 1);
    copy.add(outer, whole.dims[axis] * inner, row);
    kernels::strided_copy(part.data, source, copy, width, run.threads());
    list.items()[i] = part;
    source += row * static_cast<int64_t>(width);
  }
  run.give_output(0, list);
}

}  // namespace

extern const OpDef op_split_to_sequence = {
    .name = "SplitToSequence",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
    .lower = lower,
};

}  // namespace plimsoll
