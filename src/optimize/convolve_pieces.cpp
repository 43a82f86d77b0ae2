// A convolution of what a Concat puts together along the channels is a sum of convolutions of the pieces,
// each with its own of the weights' channels: nothing is copied, and the whole is never in memory beside its
// pieces.
#include <algorithm>
#include <vector>

#include "ops/conv_common.h"
#include "optimize/editor.h"
#include "optimize/fused.h"
#include "optimize/match.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// Below this the pieces are copied within the second-level cache, which is fast.
constexpr int64_t kLeastBytes = 512 << 10;
// Times count multiply-adds, as in use_winograd.cpp. The copy reads and writes four bytes for each channel of
// the whole, a sum writes and reads them for each channel of the result; by Winograd's way it transforms its
// results once more.
constexpr int64_t kElement = 2 * 4 * 3, kTransform = 18;

bool is_over_channels(const Node& concat) {
  const int64_t axis = attribute_or(concat, "axis", int64_t{1});
  return rank_of(concat.outputs[0]) == 4 && (axis == 3 || axis == -1);
}

// Bytes of one image; sizes that the model leaves open count as large.
int64_t image_bytes(const Edge& image) {
  int64_t bytes = sizeof(float);
  for (const Dim dim : image.facts.type.dims.subspan(1))
    bytes = checked_mul(bytes, dim.is_constant() ? dim.value() : 512);
  return bytes;
}

// The Concat whose pieces a convolution can take one by one; null if that is impossible or does not pay.
Node* concat_before(const Node& conv, const Editor& editor) {
  if (!is_op(&conv, "Conv", kPlimsollDomain) && !is_op(&conv, "FusedConv", kPlimsollDomain)) return nullptr;
  const Edge *x = conv.input(kConvX), *w = conv.input(kConvW);
  const auto& a = *static_cast<const ConvAttrs*>(conv.attrs);
  if (!a.window.channels_last || a.groups != 1 || a.some_channels > 0) return nullptr;
  if (w->data == nullptr || w->facts.type.type != ElementType::kFloat || rank_of(x) != 4) return nullptr;
  Node* concat = maker(x, "Concat");
  if (concat == nullptr || concat->inputs.size() < 2 || editor.only_user(*x) != &conv ||
      !is_over_channels(*concat))
    return nullptr;
  for (const Edge* piece : concat->inputs) {
    const Dim channels = piece->facts.type.dims[3];
    if (!channels.is_constant() || channels.value() < 1) return nullptr;
  }
  const std::span<const Dim> kernel = w->facts.type.dims;
  const bool may_transform =
      kernel[2] == Dim(3) && kernel[3] == Dim(3) && a.window.stride(0) == 1 && a.window.stride(1) == 1;
  const auto sums = static_cast<int64_t>(concat->inputs.size()) - 1;
  const int64_t cost = sums * kernel[0].value() * (kElement + (may_transform ? kTransform : 0));
  const bool pays = image_bytes(*x) >= kLeastBytes && kernel[1].value() * kElement > cost;
  return pays ? concat : nullptr;
}

void split(Node& conv, const Node& concat, Editor& editor) {
  const std::vector<Edge*> pieces(concat.inputs.begin(), concat.inputs.end());
  ConvInputs in{nullptr, conv.input(kConvW), nullptr, conv.input(kConvAddend), conv.input(kConvScale)};
  Edge* bias = conv.input(kConvBias);
  AttributeList last(editor.arena(), conv), plain(editor.arena(), conv);
  plain.erase("activation").erase("activation_params");
  EditorPlace place = editor.before(conv);
  int64_t first = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t range[] = {first, pieces[i]->facts.type.dims[3].value()};
    first += range[1];
    in.x = pieces[i];
    const bool is_last = i + 1 == pieces.size();
    if (is_last) in.bias = bias;
    AttributeList& attributes = is_last ? last : plain;
    attributes.set("weight_channels", std::span<const int64_t>(range));
    if (is_last) return editor.become(conv, kPlimsollDomain, "FusedConv", in.list(), attributes.list());
    in.addend = place.emit(kPlimsollDomain, "FusedConv", in.list(), attributes.list())->outputs[0];
  }
}

}  // namespace

bool convolve_pieces(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node)) continue;
      if (const Node* concat = concat_before(*node, editor)) split(*node, *concat, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
