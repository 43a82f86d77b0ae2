#include "optimize/layout_changes.h"

#include <algorithm>

#include "optimize/match.h"

namespace plimsoll {
namespace {

// Entry i of the result is entry `entries[i]` of a one-dimensional tensor, known or not.
Edge* gathered(Node& place, Edge* list, const std::vector<int64_t>& entries, Editor& editor) {
  const int64_t dims[] = {static_cast<int64_t>(entries.size())};
  if (is_constant(list)) {
    const auto width = static_cast<size_t>(element_bytes(list->constant->type, 1));
    std::vector<std::byte> bytes;
    for (int64_t from : entries) {
      const std::byte* element = list->constant->data + static_cast<size_t>(from) * width;
      bytes.insert(bytes.end(), element, element + width);
    }
    return editor.constant(list->name, list->constant->type, dims, bytes);
  }
  Edge* indices = editor.constant("axes", dims, std::span<const int64_t>(entries));
  AttributeList attributes(editor.arena());
  attributes.set("axis", int64_t{0});
  return editor.insert_before(place, "", "Gather", {list, indices}, attributes.list());
}

// A constant of lower rank than the output, with ones in front of its dimensions.
Edge* broadcast_constant(Node& node, Edge& constant, Editor& editor) {
  std::vector<int64_t> dims(node.outputs[0]->facts.type.rank(), 1);
  const std::span<const int64_t> given = constant.constant->dims;
  std::copy(given.begin(), given.end(), dims.end() - static_cast<std::ptrdiff_t>(given.size()));
  return moved_constant(node, *editor.constant_view(constant, dims), editor);
}

}  // namespace

Edge* transposed(Node& place, Edge& edge, const std::vector<int64_t>& perm, Editor& editor) {
  AttributeList attributes(editor.arena());
  attributes.set("perm", std::span<const int64_t>(perm));
  return editor.insert_before(place, "", "Transpose", {&edge}, attributes.list());
}

Edge* moved_constant(Node& place, Edge& constant, Editor& editor) {
  const std::span<const int64_t> dims = constant.constant->dims;
  const std::vector<int64_t> order = LayoutContext::order(dims.size());
  // The bytes keep their order if the axes that are not 1 do.
  int64_t last = -1;
  bool keeps_order = true;
  std::vector<int64_t> moved;
  for (int64_t axis : order) {
    moved.push_back(dims[static_cast<size_t>(axis)]);
    if (moved.back() == 1) continue;
    keeps_order &= axis > last;
    last = axis;
  }
  return keeps_order ? editor.constant_view(constant, moved) : transposed(place, constant, order, editor);
}

Edge* changed_input(Node& node, Edge* input, const NodeChanges::InputChange& change, Editor& editor) {
  switch (change.kind) {
    case NodeChanges::InputChange::Kind::kEntries:
      return gathered(node, input, change.values, editor);
    case NodeChanges::InputChange::Kind::kIntegers:
      return editor.integers(change.values);
    case NodeChanges::InputChange::Kind::kBroadcast:
      return broadcast_constant(node, *input, editor);
    case NodeChanges::InputChange::Kind::kAbsent:
      return nullptr;
  }
  return nullptr;
}

void put_output_in_order(Node& node, const Layout::OutputList& list, Editor& editor) {
  Edge* told = node.outputs[0];
  Edge* raw = editor.renew_output(node, 0);
  std::span<Dim> dims = editor.arena().array<Dim>(1);
  dims[0] = list.length;
  raw->facts.type.dims = dims;
  raw->facts.values.reset();
  const int64_t count[] = {static_cast<int64_t>(list.entries.size())};
  Edge* indices = editor.constant("axes", count, std::span<const int64_t>(list.entries));
  AttributeList attributes(editor.arena());
  attributes.set("axis", int64_t{0});
  editor.insert_after(node, "", "Gather", {raw, indices}, attributes.list(), told);
}

}  // namespace plimsoll
