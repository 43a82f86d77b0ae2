// Scan backwards: another Scan that goes the other way, over what the states were before each step, the
// elements that each step read, and the gradients of those that it wrote. It carries the gradients of states
// and the sums of those of captured values, and writes those of the elements.
#include "ops/body_gradient.h"
#include "ops/scan.h"

namespace plimsoll {
namespace {

// Something that the backward node scans.
struct Scanned {
  Edge *outside, *inside;
  ScanAxis axis;
};

ScanAxis reversed(ScanAxis axis) {
  axis.reverse = !axis.reverse;
  return axis;
}

void set_axes(AttributeList& attributes, std::string_view axes_name, std::string_view directions_name,
              std::span<const ScanAxis> scans) {
  std::vector<int64_t> axes, directions;
  for (const ScanAxis& scan : scans) {
    axes.push_back(scan.axis);
    directions.push_back(scan.reverse ? 1 : 0);
  }
  attributes.set(axes_name, std::span<const int64_t>(axes));
  attributes.set(directions_name, std::span<const int64_t>(directions));
}

// Those that nobody reads are no inputs; one stays, which tells how many steps there are.
void keep_used(Graph& body, std::vector<Scanned>& scanned) {
  const std::unordered_set<const Edge*> used = used_edges(body);
  const Scanned last = scanned.back();
  std::erase_if(scanned, [&](const Scanned& s) { return used.count(s.inside) == 0; });
  if (scanned.empty()) scanned.push_back(last);
}

}  // namespace

void gradient_scan(GradientContext& c) {
  const auto& a = c.attrs<ScanAttrs>();
  if (a.batched) c.reject("its gradient is for opset 9 and later");
  Graph& forward = *a.body;
  expect_no_random_nodes(c, forward);
  const std::span<Edge* const> captured = c.inside.captured;
  std::vector<size_t> real;
  for (size_t i = 0; i < a.states; ++i) {
    expect_same_shape(c, i, c.input(i).type, forward.inputs[i]->facts.type);
    if (is_real(c.input(i).type)) real.push_back(i);
  }

  BackwardBody body(c, "body");
  std::vector<Edge*> of_states, of_captured, inputs;
  for (const size_t i : real) {
    of_states.push_back(body.input("d_state", forward.inputs[i]->facts.type));
    inputs.push_back(c.gradient(i) != nullptr ? c.gradient(i) : zeros_like(c.build, c.in(i)));
  }
  for (Edge* edge : captured) {
    of_captured.push_back(body.input("d_captured", edge->facts.type));
    inputs.push_back(zeros_like(c.build, edge));
  }

  TurnStacks stacks(c, forward);
  std::vector<Scanned> scanned;
  const auto scan = [&](Edge* outside, const Edge* like, const ScanAxis& axis) {
    scanned.push_back({outside, body.input("element", like->facts.type), axis});
    return scanned.back().inside;
  };
  for (size_t i = 0; i < a.states; ++i)
    body.bind(forward.inputs[i], scan(stacks.add(forward.inputs[i]), forward.inputs[i], {0, true}));
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const Edge* element = forward.inputs[a.states + i];
    body.bind(element, scan(c.in(a.states + i), element, reversed(a.inputs[i])));
  }
  body.copy(forward);
  for (size_t k = 0; k < real.size(); ++k) body.arrives(forward.outputs[real[k]], of_states[k]);
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    Edge *gradient = c.gradient(a.states + i), *element = forward.outputs[a.states + i];
    if (gradient != nullptr) body.arrives(element, scan(gradient, element, reversed(a.outputs[i])));
  }

  std::vector<Edge*> xs;
  for (const size_t i : real) xs.push_back(body.now(forward.inputs[i]));
  xs.insert(xs.end(), captured.begin(), captured.end());
  std::vector<size_t> wanted;
  std::vector<ScanAxis> written;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!c.wants(a.states + i)) continue;
    wanted.push_back(a.states + i);
    written.push_back(reversed(a.inputs[i]));
    xs.push_back(body.now(forward.inputs[a.states + i]));
  }
  const std::vector<Edge*> gradients = body.differentiate(xs);
  const size_t sums = real.size(), elements = sums + captured.size();
  for (size_t k = 0; k < gradients.size(); ++k) {
    const bool is_sum = k >= sums && k < elements;
    body.output(is_sum ? body.build().op("Add", {of_captured[k - sums], gradients[k]}) : gradients[k]);
  }
  remove_unused_nodes(body.graph());
  keep_used(body.graph(), scanned);
  std::unordered_set<const Edge*> stacked;
  for (const Scanned& s : scanned) stacked.insert(s.outside);
  stacks.keep(stacked);

  Graph& graph = body.graph();
  graph.inputs.resize_down(inputs.size());
  std::vector<ScanAxis> axes;
  for (const Scanned& s : scanned) {
    graph.inputs.push_back(s.inside);
    inputs.push_back(s.outside);
    axes.push_back(s.axis);
  }
  AttributeList attributes = c.attributes().set("num_scan_inputs", static_cast<int64_t>(scanned.size()));
  set_axes(attributes, "scan_input_axes", "scan_input_directions", axes);
  if (!written.empty()) set_axes(attributes, "scan_output_axes", "scan_output_directions", written);
  std::vector<Attribute> all(attributes.list().begin(), attributes.list().end());
  all.push_back(body.attribute("body"));
  const Node* node = c.build.emit("", "Scan", inputs, all, gradients.size());
  for (size_t k = 0; k < sums; ++k) c.set(real[k], node->outputs[k]);
  for (size_t k = 0; k < captured.size(); ++k) c.inside.of_captured[k] = node->outputs[sums + k];
  for (size_t k = 0; k < wanted.size(); ++k) c.set(wanted[k], node->outputs[elements + k]);
}

}  // namespace plimsoll
