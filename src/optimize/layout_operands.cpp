#include "optimize/layout_operands.h"

#include <algorithm>

#include "optimize/layout_rules.h"
#include "optimize/match.h"

namespace plimsoll {
namespace {

// Entry i of the result is entry perm[i] of a one-dimensional tensor, known or not.
Edge* gather(Node& place, Edge* list, const std::vector<int64_t>& perm, Editor& editor) {
  const int64_t dims[] = {static_cast<int64_t>(perm.size())};
  if (is_constant(list)) {
    const auto width = static_cast<size_t>(element_bytes(list->constant->type, 1));
    std::vector<std::byte> bytes;
    for (int64_t from : perm) {
      const std::byte* element = list->constant->data + static_cast<size_t>(from) * width;
      bytes.insert(bytes.end(), element, element + width);
    }
    return editor.constant(list->name, list->constant->type, dims, bytes);
  }
  Edge* indices = editor.constant("axes", dims, std::span<const int64_t>(perm));
  AttributeList attributes(editor.arena());
  attributes.set("axis", int64_t{0});
  return editor.insert_before(place, "", "Gather", {list, indices}, attributes.list());
}

Edge* integers_constant(Editor& editor, const std::vector<int64_t>& values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return editor.constant("integers", dims, std::span<const int64_t>(values));
}

bool is_empty(const Edge* edge) {
  return edge == nullptr || (is_constant(edge) && edge->constant->elements() == 0);
}

bool has_length(const Edge* edge, int64_t length) {
  return edge != nullptr && rank_of(edge) == 1 && edge->facts.type.dims[0] == Dim(length);
}

}  // namespace

bool is_single_element(const Edge* edge) {
  if (rank_of(edge) < 0) return false;
  const std::span<const Dim> dims = edge->facts.type.dims;
  return std::all_of(dims.begin(), dims.end(), [](Dim d) { return d == Dim(1); });
}

std::optional<std::vector<int64_t>> axes_of(const Node& node, int64_t rank) {
  std::optional<std::vector<int64_t>> axes;
  if (const Attribute* a = node.attribute("axes")) {
    axes.emplace(a->ints.begin(), a->ints.end());
  } else {
    axes = integers(node.input(1));
  }
  if (!axes || rank < 0) return std::nullopt;
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
  }
  return axes;
}

std::optional<std::vector<int64_t>> reduce_axes(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  if (node.attribute("axes") != nullptr || node.input(1) != nullptr) {
    auto axes = axes_of(node, rank);
    if (!axes || !axes->empty()) return axes;
  }
  if (attribute_or(node, "noop_with_empty_axes", int64_t{0}) != 0) return std::nullopt;
  std::vector<int64_t> all;
  for (int64_t i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

void permute_axes(const std::vector<int64_t>& axes, int64_t rank, Editor& editor, std::vector<Edge*>& inputs,
                  AttributeList& attributes) {
  std::vector<int64_t> permuted;
  permuted.reserve(axes.size());
  for (int64_t axis : axes) permuted.push_back(axis_in_last(axis, rank));
  if (inputs.size() > 1 && inputs[1] != nullptr) {
    inputs[1] = integers_constant(editor, permuted);
  } else if (static_cast<int64_t>(axes.size()) < rank) {
    attributes.set("axes", std::span<const int64_t>(permuted));
  }
}

// ---- Slice, Pad, Resize ---------------------------------------------------------------------------

namespace {

std::optional<std::vector<int64_t>> slice_axes(const Node& node) {
  const int64_t rank = rank_of(node.input(0));
  std::optional<std::vector<int64_t>> axes;
  size_t count = 0;
  if (node.opset < 10) {
    const std::span<const int64_t> given = integers_attribute(node, "axes");
    if (!given.empty()) axes.emplace(given.begin(), given.end());
    count = integers_attribute(node, "starts").size();
  } else {
    if (node.input(3) != nullptr && !(axes = integers(node.input(3)))) return std::nullopt;
    if (rank_of(node.input(1)) != 1 || !node.input(1)->facts.type.dims[0].is_constant()) return std::nullopt;
    count = static_cast<size_t>(node.input(1)->facts.type.dims[0].value());
  }
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < count; ++i) axes->push_back(static_cast<int64_t>(i));
  }
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
  }
  return axes;
}

bool crops(const Node& resize) {
  const Attribute* mode = resize.attribute("coordinate_transformation_mode");
  return mode != nullptr && mode->s == "tf_crop_and_resize";
}

// Entries 0..rank-1, and rank..2*rank-1 if `twice`, in channels-last order.
Edge* permute_list(Node& node, Edge* list, int64_t rank, bool twice, Editor& editor) {
  std::vector<int64_t> perm = to_last_permutation(rank);
  if (twice) {
    for (int64_t i = 0; i < rank; ++i) perm.push_back(rank + perm[static_cast<size_t>(i)]);
  }
  return gather(node, list, perm, editor);
}

void permute_slice(Node& node, Editor& editor, std::vector<Edge*>& inputs, AttributeList& attributes) {
  const int64_t rank = rank_of(node.input(0));
  std::vector<int64_t> axes = *slice_axes(node);
  for (int64_t& axis : axes) axis = axis_in_last(axis, rank);
  if (node.opset < 10) {
    attributes.set("axes", std::span<const int64_t>(axes));
    return;
  }
  if (inputs.size() < 4) inputs.resize(4);
  inputs[3] = integers_constant(editor, axes);
}

}  // namespace

bool can_permute_operands(const Node& node) {
  const std::string_view op = node.op_type;
  const int64_t rank = rank_of(node.input(0));
  if (op == "Slice") return slice_axes(node).has_value();
  if (op == "Pad") {
    if (node.opset < 11) return node.opset >= 2;
    return node.input(3) == nullptr && has_length(node.input(1), 2 * rank);
  }
  if (node.attribute("axes") != nullptr || crops(node)) return false;
  if (op == "Upsample" || node.opset < 11) return node.opset >= 9 && has_length(node.input(1), rank);
  return (is_empty(node.input(2)) || has_length(node.input(2), rank)) &&
         (is_empty(node.input(3)) || has_length(node.input(3), rank));
}

void permute_operands(Node& node, Editor& editor, std::vector<Edge*>& inputs, AttributeList& attributes) {
  const std::string_view op = node.op_type;
  const int64_t rank = rank_of(node.input(0));
  if (op == "Slice") return permute_slice(node, editor, inputs, attributes);
  if (op == "Pad" && node.opset < 11) {
    const std::span<const int64_t> pads = integers_attribute(node, "pads");
    std::vector<int64_t> permuted(pads.size());
    for (int64_t i = 0; i < rank; ++i) {
      const auto to = static_cast<size_t>(axis_in_last(i, rank));
      permuted[to] = pads[static_cast<size_t>(i)];
      permuted[to + static_cast<size_t>(rank)] = pads[static_cast<size_t>(i + rank)];
    }
    attributes.set("pads", std::span<const int64_t>(permuted));
    return;
  }
  if (op == "Pad" || op == "Upsample" || node.opset < 11) {
    inputs[1] = permute_list(node, inputs[1], rank, op == "Pad", editor);
    return;
  }
  if (node.opset >= 13 && is_empty(node.input(2)) != is_empty(node.input(3))) inputs[1] = nullptr;
  for (size_t i = 2; i < inputs.size(); ++i) {
    if (!is_empty(inputs[i])) inputs[i] = permute_list(node, inputs[i], rank, false, editor);
  }
}

// ---- Reshape, Shape, constants --------------------------------------------------------------------

bool can_permute_reshape(const Node& node) {
  const Edge* x = node.input(0);
  const Edge* y = node.outputs[0];
  if (node.opset < 5 || rank_of(y) < 3 || !has_length(node.input(1), rank_of(y))) return false;
  if (!(x->facts.type.dims[0] == y->facts.type.dims[0]) || !(x->facts.type.dims[1] == y->facts.type.dims[1]))
    return false;
  // A zero copies the dimension at its place, and places change.
  if (const auto shape = integers(node.input(1)))
    return std::find(shape->begin(), shape->end(), 0) == shape->end() || y->facts.is_concrete();
  const auto& values = node.input(1)->facts.values;
  return values && std::none_of(values->begin(), values->end(), [](Dim d) { return d == Dim(0); });
}

void permute_reshape(Node& node, Editor& editor, std::vector<Edge*>& inputs) {
  const Edge* y = node.outputs[0];
  const std::vector<int64_t> perm = to_last_permutation(rank_of(y));
  if (!y->facts.is_concrete()) {
    inputs[1] = gather(node, inputs[1], perm, editor);
    return;
  }
  std::vector<int64_t> shape;
  shape.reserve(perm.size());
  for (int64_t axis : perm) shape.push_back(y->facts.type.dims[static_cast<size_t>(axis)].value());
  inputs[1] = integers_constant(editor, shape);
}

void permute_small_operands(Node& node, Editor& editor, std::vector<Edge*>& inputs) {
  const auto rank = static_cast<size_t>(rank_of(node.outputs[0]));
  for (Edge*& input : inputs) {
    if (input == nullptr || is_single_element(input) || !is_constant(input) ||
        static_cast<size_t>(rank_of(input)) == rank)
      continue;
    std::vector<int64_t> dims(rank, 1);
    const std::span<const int64_t> given = input->constant->dims;
    std::copy(given.begin(), given.end(), dims.end() - static_cast<std::ptrdiff_t>(given.size()));
    input = channels_last_constant(node, *editor.constant_view(*input, dims), editor);
  }
}

Edge* channels_last_constant(Node& place, Edge& constant, Editor& editor) {
  const std::span<const int64_t> dims = constant.constant->dims;
  const std::vector<int64_t> perm = to_last_permutation(static_cast<int64_t>(dims.size()));
  if (dims[1] == 1 || constant.constant->elements() == dims[0] * dims[1]) {
    std::vector<int64_t> permuted;
    permuted.reserve(perm.size());
    for (int64_t axis : perm) permuted.push_back(dims[static_cast<size_t>(axis)]);
    return editor.constant_view(constant, permuted);
  }
  AttributeList attributes(editor.arena());
  attributes.set("perm", std::span<const int64_t>(perm));
  return editor.insert_before(place, "", "Transpose", {&constant}, attributes.list());
}

void permute_shape_output(Node& node, Editor& editor, AttributeList& attributes) {
  const int64_t rank = rank_of(node.input(0));
  const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(attribute_or(node, "start", int64_t{0}));
  const int64_t end = clamp(attribute_or(node, "end", rank));
  std::vector<int64_t> places;
  for (int64_t axis = start; axis < end; ++axis) places.push_back(axis_in_last(axis, rank));
  attributes.erase("start").erase("end");
  Edge* told = node.outputs[0];
  Edge* raw = editor.renew_output(node, 0);
  std::span<Dim> dims = editor.arena().array<Dim>(1);
  dims[0] = rank;
  raw->facts.type.dims = dims;
  raw->facts.values.reset();
  const int64_t count[] = {static_cast<int64_t>(places.size())};
  Edge* indices = editor.constant("axes", count, std::span<const int64_t>(places));
  AttributeList gather_attributes(editor.arena());
  gather_attributes.set("axis", int64_t{0});
  editor.insert_after(node, "", "Gather", {raw, indices}, gather_attributes.list(), told);
}

}  // namespace plimsoll
