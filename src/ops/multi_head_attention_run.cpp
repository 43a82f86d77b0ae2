#include <limits>

#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

HeadFormat format_at_run(const RunContext& c, const MultiHeadAttrs& a) {
  if (!c.has_input(a.at.key)) return a.one_query ? HeadFormat::kFlatQKV : HeadFormat::kPackedQKV;
  if (!c.has_input(a.at.value)) return HeadFormat::kPackedKV;
  return c.inputs[a.at.key].rank() == 4 ? HeadFormat::kHeads : HeadFormat::kApart;
}

// Part `part` of [batch, rows, heads, parts, size].
HeadRows packed_part(const TensorView& view, int64_t part) {
  const auto d = view.dims;
  const int64_t width = element_bits(view.type) / 8, row = d[2] * d[3] * d[4];
  return {view.data + part * d[4] * width, view.type, d[1] * row, d[3] * d[4], row};
}

void set_rows(const RunContext& c, const MultiHeadAttrs& a, AttentionProblem& p) {
  const TensorView& q = c.inputs[a.at.query];
  const auto key = [&]() -> const TensorView& { return c.inputs[a.at.key]; };
  const auto value = [&]() -> const TensorView& { return c.inputs[a.at.value]; };
  p.batch = q.dims[0], p.queries = q.dims[1], p.keys = q.dims[1];
  p.q_heads = p.kv_heads = a.heads;
  switch (format_at_run(c, a)) {
    case HeadFormat::kApart:
      p.head = q.dims[2] / a.heads, p.value_head = value().dims[2] / a.heads, p.keys = key().dims[1];
      p.q = rows_of_flat(q, p.head);
      p.k = rows_of_flat(key(), p.head), p.v = rows_of_flat(value(), p.value_head);
      break;
    case HeadFormat::kHeads:
      p.head = q.dims[2] / a.heads, p.value_head = value().dims[3], p.keys = key().dims[2];
      p.q = rows_of_flat(q, p.head);
      p.k = rows_of_heads(key()), p.v = rows_of_heads(value());
      break;
    case HeadFormat::kPackedKV:
      p.head = p.value_head = key().dims[4], p.keys = key().dims[1];
      p.q = rows_of_flat(q, p.head);
      p.k = packed_part(key(), 0), p.v = packed_part(key(), 1);
      break;
    case HeadFormat::kPackedQKV:
      p.head = p.value_head = q.dims[4];
      p.q = packed_part(q, 0), p.k = packed_part(q, 1), p.v = packed_part(q, 2);
      break;
    case HeadFormat::kFlatQKV:
      p.head = p.value_head = q.dims[2] / (3 * a.heads);
      p.q = rows_of_flat(q, p.head);
      p.k = rows_of_flat(q, p.head, q.dims[2] / 3), p.v = rows_of_flat(q, p.head, 2 * (q.dims[2] / 3));
      break;
  }
  p.y = rows_of_flat(c.outputs[0], p.value_head);
}

// Keys that come divided into heads are finished: they take no bias.
void set_bias(const RunContext& c, const MultiHeadAttrs& a, AttentionProblem& p) {
  if (!c.has_input(a.at.bias)) return;
  const TensorView& bias = c.inputs[a.at.bias];
  p.change_q.bias = &bias;
  if (format_at_run(c, a) == HeadFormat::kHeads) return;
  p.change_k.bias = p.change_v.bias = &bias;
  p.change_k.bias_first = a.heads * p.head;
  p.change_v.bias_first = 2 * a.heads * p.head;
}

void set_cache(const RunContext& c, const MultiHeadAttrs& a, AttentionProblem& p) {
  int64_t past = 0, most = p.keys;
  if (c.has_input(a.at.past_key)) {
    const TensorView& cache = c.inputs[a.at.past_key];
    p.past_k = rows_of_heads(cache), p.past_v = rows_of_heads(c.inputs[a.at.past_value]);
    past = a.shares ? length_at_run(c, a.at.past_length) : cache.dims[2];
    most = a.shares ? cache.dims[2] : past + p.keys;
    if (past < 0 || past > most - p.keys)
      fail(ErrorCode::kInvalidArgument, "{}: past_sequence_length is {}, expected 0 to {} for {} new of {}",
           c.node->label(), past, most - p.keys, p.keys, most);
  }
  if (c.has_output(1)) p.present_k = rows_of_heads(c.outputs[1]);
  if (c.has_output(2)) p.present_v = rows_of_heads(c.outputs[2]);
  p.present_rows = most;
  p.keeps_rest = a.shares && c.has_input(a.at.past_key);
  const int64_t total = past + p.keys;
  for (int64_t b = 0; b < p.batch; ++b) p.lengths[b] = {past, total, total, past};
}

void set_beams(const RunContext& c, const MultiHeadAttrs& a, AttentionProblem& p) {
  const int64_t past = p.batch > 0 ? p.lengths[0].past : 0;
  if (!c.has_input(a.at.beams) || past == 0) return;
  const TensorView& view = c.inputs[a.at.beams];
  p.beams = view.dims[1], p.beam_stride = view.dims[2];
  p.beam_of_key = view.as<int32_t>();
  if (p.beam_stride < past)
    fail(ErrorCode::kInvalidArgument, "{}: cache_indirection: expected {} positions, found {}",
         c.node->label(), past, p.beam_stride);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t j = 0; j < past; ++j) {
      const int32_t beam = p.beam_of_key[b * p.beam_stride + j];
      if (beam < 0 || beam >= p.beams)
        fail(ErrorCode::kInvalidArgument, "{}: cache_indirection: beam {} is outside [0, {})",
             c.node->label(), beam, p.beams);
    }
  }
}

double lowest_of(ElementType type) {
  if (type == ElementType::kFloat16) return -65504;
  if (type == ElementType::kBFloat16) return -3.3895313892515355e38;
  return double{std::numeric_limits<float>::lowest()};
}

}  // namespace

void run_multi_head(const RunContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  AttentionProblem p(c, c.choice<AttentionChoice>());
  set_rows(c, a, p);
  set_bias(c, a, p);
  set_cache(c, a, p);
  set_beams(c, a, p);
  const int64_t total = p.batch > 0 ? p.lengths[0].rows : 0;
  p.scale = a.scale;
  p.causal = a.causal && p.queries > 1;
  p.mask = attention_bias_at_run(c, a.at.mask, total);
  p.padding = padding_at_run(c, a.at.padding, p.batch, total, a.filter);
  if (c.has_output(3)) p.scores = {ScoresStage::kMasked, &c.outputs[3], lowest_of(c.outputs[3].type)};
  run_attention_core(p);
}

}  // namespace plimsoll
