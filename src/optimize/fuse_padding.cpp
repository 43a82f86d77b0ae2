#include <algorithm>

#include "optimize/editor.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

bool pads_with_zeros(const Node& pad) {
  const Attribute* mode = pad.attribute("mode");
  if (mode != nullptr && mode->s != "constant") return false;
  if (pad.opset < 11) return attribute_or(pad, "value", 0.0f) == 0;
  return pad.input(2) == nullptr || is_scalar(pad.input(2), pad.input(0), 0.0f);
}

// What is added along the spatial dimensions, in the order of a window's attribute; nullopt if that is not
// all, or not known.
std::optional<std::vector<int64_t>> spatial_padding(const Node& pad) {
  const int64_t rank = rank_of(pad.input(0));
  std::vector<int64_t> given;
  if (pad.opset < 11) {
    const auto attribute = integers_attribute(pad, pad.opset < 2 ? "paddings" : "pads");
    given.assign(attribute.begin(), attribute.end());
  } else if (const auto values = integers(pad.input(1)); values && pad.input(3) == nullptr) {
    given = *values;
  }
  constexpr int64_t kOutside = 2;  // samples and channels
  if (rank <= kOutside || static_cast<int64_t>(given.size()) != 2 * rank) return std::nullopt;
  std::vector<int64_t> result;
  for (int64_t i = 0; i < 2 * rank; ++i) {
    const int64_t count = given[static_cast<size_t>(i)];
    const bool is_outside = i % rank < kOutside;
    if (count < 0 || (is_outside && count != 0)) return std::nullopt;
    if (!is_outside) result.push_back(count);
  }
  return result;
}

// The window's own padding; nullopt if it depends on sizes.
std::optional<std::vector<int64_t>> own_padding(const Node& window, size_t count) {
  const Attribute* automatic = window.attribute("auto_pad");
  const bool is_valid = automatic != nullptr && automatic->s == "VALID";
  if (automatic != nullptr && !is_valid && automatic->s != "NOTSET") return std::nullopt;
  const auto pads = integers_attribute(window, "pads");
  if (pads.empty() || is_valid) return std::vector<int64_t>(count, 0);
  if (pads.size() != count) return std::nullopt;
  return std::vector<int64_t>(pads.begin(), pads.end());
}

// An average counts all of its padding or none, and ONNX wants every window to touch the image.
bool can_average(const Node& pool, const std::vector<int64_t>& own, const std::vector<int64_t>& added) {
  constexpr int kCountsPadding = 7;
  const auto kernel = integers_attribute(pool, "kernel_shape");
  if (pool.opset < kCountsPadding || attribute_or(pool, "ceil_mode", int64_t{0}) != 0) return false;
  if (std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; })) return false;
  for (size_t i = 0; i < added.size(); ++i) {
    if (kernel.empty() || added[i] >= kernel[i % kernel.size()]) return false;
  }
  return true;
}

void fuse(Node& window, Editor& editor) {
  const bool averages = is_op(&window, "AveragePool");
  if (!averages && !is_op(&window, "Conv")) return;
  const Node* pad = maker(window.input(0), "Pad");
  if (pad == nullptr || !pads_with_zeros(*pad)) return;
  const auto added = spatial_padding(*pad);
  if (!added) return;
  auto pads = own_padding(window, added->size());
  if (!pads || (averages && !can_average(window, *pads, *added))) return;
  for (size_t i = 0; i < added->size(); ++i) (*pads)[i] += (*added)[i];
  AttributeList attributes(editor.arena(), window);
  attributes.erase("auto_pad").set("pads", std::span<const int64_t>(*pads));
  if (averages) attributes.set("count_include_pad", int64_t{1});
  std::vector<Edge*> inputs(window.inputs.begin(), window.inputs.end());
  inputs[0] = pad->inputs[0];
  editor.become(window, "", window.op_type, inputs, attributes.list());
}

}  // namespace

bool fuse_padding(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (editor.alive(*node)) fuse(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
