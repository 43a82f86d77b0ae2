#include "optimize/affine.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

std::vector<float> spread(const std::vector<float>& values, int64_t channels) {
  if (static_cast<int64_t>(values.size()) == channels) return values;
  return std::vector<float>(static_cast<size_t>(channels), values[0]);
}

// What follows the convolution and is affine per channel, as one map; `last` is where it ends.
Affine collect(Node*& last, int64_t rank, int64_t channels, const Affine& start, bool with_scale,
               const Editor& editor) {
  Affine total = start;
  while (true) {
    Edge* y = last->outputs[0];
    Node* next = editor.only_user(*y);
    const auto step = next != nullptr ? affine_of(*next, *y, rank, channels) : std::nullopt;
    if (!step || (!with_scale && step->scales())) return total;
    total = total.then(*step);
    last = next;
  }
}

void fuse_conv(Node& node, Editor& editor) {
  ConvInputs in = open_conv(&node);
  if (in.x == nullptr || in.w == nullptr || in.addend != nullptr || !is_constant(in.w)) return;
  if (in.x->facts.type.type == ElementType::kDouble) return;  // the maps are of floats
  const int64_t rank = rank_of(in.w);
  const int64_t channels = rank > 0 ? in.w->constant->dims[0] : 0;
  const auto bias = in.bias != nullptr ? floats(in.bias) : std::vector<float>{0.0f};
  const auto scale = in.scale != nullptr ? floats(in.scale) : std::vector<float>{1.0f};
  if (rank < 3 || channels < 1 || !bias || !scale) return;
  Node* last = &node;
  const Affine total = collect(last, rank, channels, {*scale, *bias}, true, editor);
  if (last == &node) return;
  const int64_t dims[] = {channels};
  const ElementType type = in.x->facts.type.type;
  in.bias = editor.reals("folded_bias", type, dims, spread(total.shift, channels));
  in.scale =
      total.scales() ? editor.reals("weight_scale", type, dims, spread(total.scale, channels)) : nullptr;
  const AttributeList attributes(editor.arena(), node);
  editor.become(*last, kPlimsollDomain, "FusedConv", in.list(), attributes.list());
}

// ConvTranspose has a bias but no scale of its own.
void fuse_conv_transpose(Node& node, Editor& editor) {
  if (!is_real(node.outputs[0]) || !is_constant(node.input(1))) return;
  if (node.outputs[0]->facts.type.type == ElementType::kDouble) return;
  const int64_t rank = rank_of(node.input(1));
  if (rank < 3) return;
  const int64_t channels = node.input(1)->constant->dims[1] * attribute_or(node, "group", int64_t{1});
  const auto bias = node.input(2) != nullptr ? floats(node.input(2)) : std::vector<float>{0.0f};
  if (!bias || channels < 1) return;
  Node* last = &node;
  const Affine total = collect(last, rank, channels, {{1.0f}, *bias}, false, editor);
  if (last == &node) return;
  const int64_t dims[] = {channels};
  Edge* folded =
      editor.reals("folded_bias", node.outputs[0]->facts.type.type, dims, spread(total.shift, channels));
  const AttributeList attributes(editor.arena(), node);
  editor.become(*last, "", "ConvTranspose", {node.input(0), node.input(1), folded}, attributes.list());
}

}  // namespace

bool fuse_conv_affine(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node)) continue;
      fuse_conv(*node, editor);
      if (is_op(node, "ConvTranspose")) fuse_conv_transpose(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
