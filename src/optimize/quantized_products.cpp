// Conv, MatMul and Gemm between DequantizeLinear and QuantizeLinear: products of integers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "optimize/quantized.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

// One scale, or one along `axis`; the value is of 8 bits.
QuantizedValue operand(const Edge* edge, int64_t axis) {
  const QuantizedValue value = dequantized(edge);
  if (!value || !is_byte(value.type())) return {};
  return value.is_whole() || value.axis == axis ? value : QuantizedValue{};
}

// The numbers that a constant bias means, of floats or behind DequantizeLinear; none if it is anything else.
std::vector<double> bias_values(const Edge* bias) {
  std::vector<double> values;
  if (const auto plain = floats(bias)) {
    values.assign(plain->begin(), plain->end());
    return values;
  }
  const QuantizedValue stored = dequantized(bias);
  if (!stored || stored.type() != ElementType::kInt32 || !is_constant(stored.q)) return {};
  const auto at = [](const Edge* edge, int64_t i) {
    int32_t value;
    std::memcpy(&value, edge->constant->data + i * 4, sizeof value);
    return value;
  };
  const std::vector<float> scales = *floats(stored.scale);
  for (int64_t i = 0; i < stored.q->constant->elements(); ++i) {
    const size_t channel = static_cast<size_t>(i) % scales.size();
    if (stored.zero != nullptr && at(stored.zero, static_cast<int64_t>(channel)) != 0) return {};
    values.push_back(at(stored.q, i) * static_cast<double>(scales[channel]));
  }
  return values;
}

// The bias in units of the sums. Where its own scale is another, rounding moves a result by half of such a
// unit at most, far below a step of the output.
Edge* integer_bias(const Edge* bias, const QuantizedValue& x, const QuantizedValue& w, int64_t columns,
                   Editor& editor) {
  const std::vector<double> values = bias_values(bias);
  if (static_cast<int64_t>(values.size()) != columns) return nullptr;
  const auto x_scale = static_cast<double>(scale_of(x));
  const std::vector<float> w_scale = *floats(w.scale);
  std::vector<int32_t> made;
  for (size_t i = 0; i < values.size(); ++i) {
    const double unit = x_scale * static_cast<double>(w_scale[i % w_scale.size()]);
    const double whole = std::nearbyint(values[i] / unit);
    if (!(std::abs(whole) <= static_cast<double>(std::numeric_limits<int32_t>::max()))) return nullptr;
    made.push_back(static_cast<int32_t>(whole));
  }
  const int64_t dims[] = {columns};
  return editor.constant("bias", ElementType::kInt32, dims, std::as_bytes(std::span(made)));
}

// What becomes of the product: the node to take the place of, the bounds of an activation before it, and the
// scale of the result, if it is quantized.
struct Ending {
  Node* last = nullptr;
  QuantizedValue y;
  std::optional<int32_t> least, most;
};

int32_t bound(const QuantizedValue& y, float value) {
  const double whole = std::nearbyint(static_cast<double>(value / scale_of(y))) + zero_of(y);
  return static_cast<int32_t>(std::clamp(whole, -1000.0, 1000.0));
}

Ending ending_of(Node& product, const Editor& editor) {
  Edge* y = product.outputs[0];
  if (Node* q = only_quantizer(*y, editor)) return {q, quantized(q), {}, {}};
  Node* act = editor.only_user(*y);
  const Ending none{&product, {}, {}, {}};
  if (act == nullptr || act->input(0) != y || (!is_op(act, "Relu") && !is_op(act, "Clip"))) return none;
  Node* q = only_quantizer(*act->outputs[0], editor);
  if (q == nullptr) return none;
  Ending ending{q, quantized(q), {}, {}};
  if (is_op(act, "Relu")) {
    ending.least = zero_of(ending.y);
    return ending;
  }
  if (act->opset < 11) return none;
  for (size_t i : {1, 2}) {
    if (act->input(i) == nullptr) continue;
    const auto value = floats(act->input(i), 1);
    if (!value || value->size() != 1 || std::isnan((*value)[0])) return none;
    (i == 1 ? ending.least : ending.most) = bound(ending.y, (*value)[0]);
  }
  return ending.least && ending.most && *ending.least > *ending.most ? none : ending;
}

void fuse_conv(Node& conv, Editor& editor) {
  const QuantizedValue x = whole_dequantized(conv.input(0)), w = operand(conv.input(1), 0);
  if (!x || !w || rank_of(w.q) < 3 || !w.q->facts.is_concrete()) return;
  Edge* bias = nullptr;
  if (conv.input(2) != nullptr) {
    bias = integer_bias(conv.inputs[2], x, w, w.q->facts.type.dims[0].value(), editor);
    if (bias == nullptr) return;
  }
  const Ending end = ending_of(conv, editor);
  AttributeList attributes(editor.arena(), conv);
  std::vector<Edge*> inputs = {x.q, x.scale, zero_edge(x, editor), w.q, w.scale, zero_edge(w, editor)};
  inputs.push_back(end.y ? end.y.scale : nullptr);
  inputs.push_back(end.y ? zero_edge(end.y, editor) : nullptr);
  if (bias != nullptr) inputs.push_back(bias);
  if (end.least) attributes.set("least", int64_t{*end.least});
  if (end.most) attributes.set("most", int64_t{*end.most});
  const bool is_plain = end.y && !end.least && !end.most;
  editor.become(*end.last, is_plain ? "" : kPlimsollDomain, is_plain ? "QLinearConv" : "FusedQLinearConv",
                inputs, attributes.list());
}

void fuse_matmul(Node& product, Editor& editor) {
  const Edge* right = product.input(1);
  const QuantizedValue a = whole_dequantized(product.input(0)), b = operand(right, rank_of(right) - 1);
  if (!a || !b || (!b.is_whole() && rank_of(b.q) != 2)) return;
  if (Node* q = only_quantizer(*product.outputs[0], editor)) {
    const QuantizedValue y = quantized(q);
    editor.become(*q, "", "QLinearMatMul",
                  {a.q, a.scale, zero_edge(a, editor), b.q, b.scale, zero_edge(b, editor), y.scale,
                   zero_edge(y, editor)},
                  {});
    return;
  }
  editor.become(product, kMicrosoftDomain, "MatMulIntegerToFloat",
                {a.q, b.q, a.scale, b.scale, zero_edge(a, editor), zero_edge(b, editor)}, {});
}

void fuse_gemm(Node& gemm, Editor& editor) {
  const bool turned = attribute_or(gemm, "transB", int64_t{0}) != 0;
  const QuantizedValue a = whole_dequantized(gemm.input(0)), b = operand(gemm.input(1), turned ? 0 : 1);
  if (!a || !b || rank_of(a.q) != 2 || rank_of(b.q) != 2 || attribute_or(gemm, "alpha", 1.0f) != 1.0f) return;
  const Dim columns = b.q->facts.type.dims[turned ? 0 : 1];
  Edge* bias = nullptr;
  if (gemm.input(2) != nullptr) {
    if (!columns.is_constant() || attribute_or(gemm, "beta", 1.0f) != 1.0f) return;
    bias = integer_bias(gemm.inputs[2], a, b, columns.value(), editor);
    if (bias == nullptr) return;
  }
  AttributeList attributes(editor.arena(), gemm);
  attributes.erase("beta");
  std::vector<Edge*> inputs = {a.q, a.scale, zero_edge(a, editor), b.q, b.scale, zero_edge(b, editor), bias};
  Node* last = &gemm;
  if (Node* q = only_quantizer(*gemm.outputs[0], editor)) {
    const QuantizedValue y = quantized(q);
    inputs.push_back(y.scale);
    inputs.push_back(zero_edge(y, editor));
    last = q;
  }
  editor.become(*last, kMicrosoftDomain, "QGemm", inputs, attributes.list());
}

}  // namespace

bool fuse_quantized_products(Graph& root, const OptimizeOptions& options) {
  Editor editor(root, options.tables);
  for (Graph* graph : editor.graphs()) {
    for (Node* node : editor.nodes(*graph)) {
      if (!editor.alive(*node) || !node->domain.empty()) continue;
      if (node->op_type == "Conv") fuse_conv(*node, editor);
      if (node->op_type == "MatMul") fuse_matmul(*node, editor);
      if (node->op_type == "Gemm") fuse_gemm(*node, editor);
    }
  }
  return editor.finish();
}

}  // namespace plimsoll
