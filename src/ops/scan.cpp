#include "ops/scan.h"

#include <algorithm>

#include "ops/body_gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

// One entry for each, forward along axis 0 where the attributes say nothing.
std::span<ScanAxis> read_axes(AttrContext& c, size_t count, std::string_view axes_name,
                              std::string_view directions_name) {
  std::span<ScanAxis> result = c.arena().array<ScanAxis>(count);
  std::fill(result.begin(), result.end(), ScanAxis{});
  const auto axes = axes_name.empty() ? std::span<const int64_t>() : c.integers(axes_name);
  const auto directions = directions_name.empty() ? std::span<const int64_t>() : c.integers(directions_name);
  if (!axes.empty() && axes.size() != count)
    c.reject("attribute '{}': expected {} numbers, found {}", axes_name, count, axes.size());
  if (!directions.empty() && directions.size() != count)
    c.reject("attribute '{}': expected {} numbers, found {}", directions_name, count, directions.size());
  for (size_t i = 0; i < axes.size(); ++i) result[i].axis = axes[i];
  for (size_t i = 0; i < directions.size(); ++i) {
    if (directions[i] != 0 && directions[i] != 1)
      c.reject("attribute '{}': expected 0 or 1, found {}", directions_name, directions[i]);
    result[i].reverse = directions[i] != 0;
  }
  return result;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<ScanAttrs>();
  a->body = c.body("body");
  a->batched = c.opset() < 9;
  a->first_input = a->batched ? 1 : 0;
  const Node& node = c.node();
  const size_t given = node.inputs.size() - a->first_input;
  const int64_t scans = c.integer("num_scan_inputs");
  if (scans < 1 || scans > static_cast<int64_t>(given))
    c.reject("attribute 'num_scan_inputs': expected 1 to {}, found {}", given, scans);
  a->states = given - static_cast<size_t>(scans);
  for (size_t i = a->first_input; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == nullptr) c.reject("input {} is missing", i);
  }
  if (a->body->inputs.size() != given)
    c.reject("expected {} inputs of the body, found {}", given, a->body->inputs.size());
  if (a->body->outputs.size() != node.outputs.size() || node.outputs.size() < a->states)
    c.reject("expected {} outputs of the body, found {}", node.outputs.size(), a->body->outputs.size());
  const size_t outputs = node.outputs.size() - a->states;
  if (a->batched) {
    a->inputs = read_axes(c, static_cast<size_t>(scans), "", "directions");
    a->outputs = read_axes(c, outputs, "", "");
    for (ScanAxis& axis : a->inputs) axis.axis = 1;
    for (ScanAxis& axis : a->outputs) axis.axis = 1;
  } else {
    a->inputs = read_axes(c, static_cast<size_t>(scans), "scan_input_axes", "scan_input_directions");
    a->outputs = read_axes(c, outputs, "scan_output_axes", "scan_output_directions");
  }
  return a;
}

// ---- inference ----------------------------------------------------------------------------------------

Facts without_data(const Facts& facts) {
  Facts result;
  result.type = facts.type;
  return result;
}

// What the nodes of the opset 8 form give and take has the batch in front.
Facts without_batch(InferContext& c, const ScanAttrs& a, size_t input, Dim& batch) {
  Facts facts = without_data(c.input(input));
  if (!a.batched || !facts.type.ranked) return facts;
  c.expect_rank(input, 1, InferContext::kMaxRank);
  batch = unify(c, batch, facts.type.dims[0]);
  facts.type.dims = facts.type.dims.subspan(1);
  return facts;
}

Facts element_of(InferContext& c, const ScanAttrs& a, size_t scan, Dim& batch, Dim& steps) {
  const size_t input = a.first_input + a.states + scan;
  Facts facts = without_data(c.input(input));
  if (!facts.type.ranked) return facts;
  c.expect_rank(input, a.batched ? 2 : 1, InferContext::kMaxRank);
  const auto axis = static_cast<size_t>(c.axis(a.inputs[scan].axis, facts.type.rank()));
  steps = unify(c, steps, facts.type.dims[axis]);
  std::vector<Dim> dims(facts.type.dims.begin(), facts.type.dims.end());
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  if (a.batched) {
    batch = unify(c, batch, dims[0]);
    dims.erase(dims.begin());
  }
  facts.type.dims = c.arena().copy(dims);
  return facts;
}

// A state keeps its shape. What is known before but not after a step, or the other way round, only the data
// tells. True if something had to be forgotten.
bool settle(InferContext& c, size_t i, Facts& before, const Facts& after) {
  if (before.type.type != after.type.type)
    c.reject("state {} changes from {} to {}", i, to_string(before.type), to_string(after.type));
  if (!before.type.ranked) return false;
  if (!after.type.ranked) {
    before.type.ranked = false;
    before.type.dims = {};
    return true;
  }
  bool changed = false;
  std::vector<Dim> dims(before.type.dims.begin(), before.type.dims.end());
  bool fits = after.type.rank() == dims.size();
  for (size_t d = 0; fits && d < dims.size(); ++d) {
    const Dim next = after.type.dims[d];
    if (dims[d] == next || dims[d].depends_on_data()) continue;
    fits = !dims[d].is_constant() || !next.is_constant();
    dims[d] = c.unknown("");
    changed = true;
  }
  if (!fits) c.reject("state {} changes from {} to {}", i, to_string(before.type), to_string(after.type));
  before.type.dims = c.arena().copy(dims);
  return changed;
}

void set_result(InferContext& c, size_t i, const TypeInfo& type, std::vector<Dim> front) {
  if (!type.ranked) return c.set_unranked_output(i, type.type);
  front.insert(front.end(), type.dims.begin(), type.dims.end());
  c.set_output(i, type.type, front);
}

void set_scan_result(InferContext& c, const ScanAttrs& a, size_t scan, const TypeInfo& element, Dim batch,
                     Dim steps) {
  const size_t i = a.states + scan;
  if (a.batched || !element.ranked) return set_result(c, i, element, {batch, steps});
  std::vector<Dim> dims(element.dims.begin(), element.dims.end());
  const int64_t axis = c.axis(a.outputs[scan].axis, dims.size() + 1);
  dims.insert(dims.begin() + axis, steps);
  c.set_output(i, element.type, dims);
}

void infer(InferContext& c) {
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  if (a.batched && c.has_input(0)) c.expect_type(0, types(ElementType::kInt64));
  Dim batch = c.unknown("batch"), steps = c.unknown("steps");
  std::vector<Facts> inputs;
  const TypeSet carried = a.batched ? kAllTypes : kViewTypes;
  for (size_t i = 0; i < a.states; ++i) {
    c.expect_type(a.first_input + i, carried);
    inputs.push_back(without_batch(c, a, a.first_input + i, batch));
  }
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    c.expect_type(a.first_input + a.states + i, carried);
    inputs.push_back(element_of(c, a, i, batch, steps));
  }
  std::vector<Facts> outputs;
  for (bool changed = true; changed;) {  // ends: every round forgets something
    outputs = c.bodies->infer(*a.body, inputs);
    changed = false;
    for (size_t i = 0; i < a.states; ++i) changed |= settle(c, i, inputs[i], outputs[i]);
  }
  for (size_t i = 0; i < a.states; ++i)
    set_result(c, i, inputs[i].type, a.batched ? std::vector<Dim>{batch} : std::vector<Dim>());
  for (size_t i = 0; i < a.outputs.size(); ++i)
    set_scan_result(c, a, i, outputs[a.states + i].type, batch, steps);
}

// ---- planning -----------------------------------------------------------------------------------------

// Bytes of a value inside the body, where its shape is known; 0 otherwise.
Dim known_bytes(const Facts& facts) {
  const bool known =
      facts.type.ranked && facts.type.kind == ValueKind::kTensor &&
      std::none_of(facts.type.dims.begin(), facts.type.dims.end(), [](Dim d) { return d.depends_on_data(); });
  return known ? ceil_div(product(facts.type.dims) * Dim(element_bits(facts.type.type)), Dim(8)) : Dim(0);
}

// Two copies of each state, what a step reads and what it writes, then an element of each scan input, of
// which those that lie in one piece, in whole bytes, need none.
void workspace(WorkspaceContext& c) {
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  for (size_t i = 0; i < a.states; ++i) {
    for (int copy = 0; copy < 2; ++copy) c.add(known_bytes(c.inside(a.body->inputs[i])));
  }
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const size_t input = a.first_input + a.states + i;
    const bool in_whole_bytes = element_bits(c.type(input)) >= 8;
    const bool in_one_piece =
        !c.ranked(input) ||
        (in_whole_bytes && (a.batched || axis_from_front(a.inputs[i], c.rank(input)) == 0));
    c.add(in_one_piece ? Dim(0) : known_bytes(c.inside(a.body->inputs[a.states + i])));
  }
}

constexpr ControlFlow kControlFlow = {.workspace = workspace, .run = run_scan};

}  // namespace

extern const OpDef op_scan = {
    .name = "Scan",
    .inputs = {1, kAnyNumber},
    .outputs = {1, kAnyNumber},
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .control_flow = &kControlFlow,
    .optional_inputs = 0b1,
    .gradient = gradient_scan,
};

}  // namespace plimsoll
