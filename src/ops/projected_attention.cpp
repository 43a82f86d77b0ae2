// ProjectedAttention(QKV, mask_index, past, attention_bias, past_sequence_length): what com.microsoft's
// Attention is once Q, K and V stand behind each other in [batch, queries, widths].
#include <algorithm>
#include <limits>

#include "ops/projected_attention.h"

#include "ops/movement.h"

namespace plimsoll {

void read_projected(AttrContext& c, ProjectedAttrs& a) {
  a.heads = read_heads(c, "num_heads");
  a.scale = read_scale(c);
  a.filter = c.real("mask_filter_value", -10000.0f);
  a.causal = c.integer("unidirectional", 0) == 1;
  a.shares = c.integer("past_present_share_buffer", 0) != 0;
  const auto widths = c.integers("qkv_hidden_sizes");
  if (widths.empty()) return;
  if (widths.size() != 3) c.reject("qkv_hidden_sizes: expected 3 numbers, found {}", widths.size());
  for (int64_t width : widths) {
    if (width < 1 || width > INT32_MAX || width % a.heads != 0)
      c.reject("qkv_hidden_sizes: {} cannot be divided into {} heads", width, a.heads);
  }
  if (widths[0] != widths[1])
    c.reject("qkv_hidden_sizes: {} and {} of query and key differ", widths[0], widths[1]);
  a.width = widths[0], a.value_width = widths[2];
}

ProjectedShape projected_shape(const InferContext& c, const ProjectedAttrs& a, const ProjectedInputs& at,
                               Dim batch, Dim queries, Dim columns) {
  ProjectedShape s;
  s.batch = batch, s.queries = queries;
  if (columns.is_constant()) {
    const int64_t total = columns.value(),
                  expected = a.width == 0 ? total / 3 * 3 : 2 * a.width + a.value_width;
    if (total != expected) c.reject("{} columns of Q, K and V: expected {}", total, expected);
    if (a.width == 0 && total / 3 % a.heads != 0)
      c.reject("{} cannot be divided into {} heads", total / 3, a.heads);
  }
  s.head = floor_div(a.width == 0 ? floor_div(columns, Dim(3)) : Dim(a.width), Dim(a.heads));
  s.value_head = a.width == 0 ? s.head : Dim(a.value_width / a.heads);
  if (c.has_input(at.past) && c.ranked(at.past)) s.past = c.dims(at.past)[3];
  s.rows = c.has_input(at.past) && a.shares ? s.past : s.past + s.queries;
  return s;
}

namespace {

void check_mask(const InferContext& c, size_t i, const ProjectedShape& s, std::optional<Dim> total,
                bool causal) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  c.expect_type(i, types(ElementType::kInt32));
  c.expect_rank(i, 1, 4);
  const auto mask = c.dims(i);
  if (mask.size() == 2 && mask[1] == Dim(1)) {  // of whoever has no mask but must give one
    if (!(mask[0] == Dim(1))) expect_dim(c, i, 0, s.batch);
    return;
  }
  if (mask.size() < 4) return check_padding(c, i, s.batch, s.queries, total, true);
  if (causal) c.reject("a mask of 4 dimensions cannot be combined with unidirectional");
  expect_dim(c, i, 0, s.batch);
  expect_dim(c, i, 1, 1);
  expect_dim(c, i, 2, mask[3]);
  if (total && total->is_constant() && mask[3].is_constant() && mask[3].value() < total->value())
    c.reject("input {}: expected a mask of at least {} keys, found shape {}", i, total->value(),
             to_string(mask));
}

}  // namespace

void infer_projected(InferContext& c, const ProjectedAttrs& a, const ProjectedInputs& at, Dim batch,
                     Dim queries, Dim columns) {
  const bool has_past = c.has_input(at.past);
  if (has_past) {
    c.expect_same_type(0, at.past);
    c.expect_rank(at.past, 5, 5);
    if (a.shares && !c.has_input(at.past_length))
      c.reject("past_sequence_length is needed where past and present share a buffer");
  }
  if (c.has_input(at.past_length)) c.expect_type(at.past_length, types(ElementType::kInt32));
  const ProjectedShape s = projected_shape(c, a, at, batch, queries, columns);
  if ((has_past || c.has_output(1)) && s.head.is_constant() && s.value_head.is_constant() &&
      !(s.head == s.value_head))
    c.reject("past and present need keys and values of one width");
  const bool shares = has_past && a.shares;
  const auto past = shares ? known_length_value(c, at.past_length) : std::optional<Dim>(s.past);
  const std::optional<Dim> total = past ? std::optional<Dim>(*past + queries) : std::nullopt;
  if (has_past && c.ranked(at.past)) {
    const Dim expected[] = {2, batch, a.heads, s.past, s.head};
    for (size_t d = 0; d < 5; ++d) expect_dim(c, at.past, d, expected[d]);
  }
  check_mask(c, at.mask, s, total, a.causal);
  check_attention_bias(c, at.bias, batch, a.heads, queries, total);
  c.set_output(0, c.type(0), std::vector<Dim>{batch, queries, Dim(a.heads) * s.value_head});
  if (has_past && !c.ranked(at.past)) return c.set_unranked_output(1, c.type(0));
  c.set_output(1, c.type(0), std::vector<Dim>{2, batch, a.heads, s.rows, s.head});
}

namespace {

constexpr ProjectedInputs kInputs{1, 2, 3, 4};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ProjectedAttrs>();
  read_projected(c, *a);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAttentionTypes);
  c.expect_rank(0, 3, 3);
  if (!c.ranked(0)) {
    for (size_t i = 0; i < c.output_count(); ++i) c.set_unranked_output(i, c.type(0));
    return;
  }
  const auto x = c.dims(0);
  infer_projected(c, c.attrs<ProjectedAttrs>(), kInputs, x[0], x[1], x[2]);
}

void alias(AliasContext& c) {
  if (c.attrs<ProjectedAttrs>().shares && c.has_input(kInputs.past) && c.has_output(1))
    c.overwrite(kInputs.past, 1);
}

Dim head_of(const NodeContext& c, const ProjectedAttrs& a) {
  return floor_div(a.width == 0 ? floor_div(c.dims(0)[2], Dim(3)) : Dim(a.width), Dim(a.heads));
}
Dim rows_of(const NodeContext& c, const ProjectedAttrs& a) {
  if (!c.has_input(kInputs.past)) return c.dims(0)[1];
  const Dim past = c.dims(kInputs.past)[3];
  return a.shares ? past : past + c.dims(0)[1];
}

const void* select(SelectContext& c) {
  const auto& a = c.attrs<ProjectedAttrs>();
  const bool has_past = c.has_input(kInputs.past);
  if (!c.ranked(0) || (has_past && !c.ranked(kInputs.past))) return nullptr;
  const Dim head = head_of(c, a);
  AttentionNeeds n{c.dims(0)[0], c.dims(0)[1], rows_of(c, a), head,
                   a.width == 0 ? head : Dim(a.value_width / a.heads)};
  const bool narrow = c.type(0) != ElementType::kFloat;
  n.copies_query = n.copies_result = narrow;
  n.copies_keys = n.copies_values = narrow || (has_past && !c.has_output(1));
  return choose_attention(c, n);
}

// Keys, then values, of [2, batch, heads, rows, size].
HeadRows half_of_cache(const TensorView& view, int64_t half) {
  const auto d = view.dims;
  const int64_t width = element_bits(view.type) / 8, rows = d[3] * d[4], all = d[1] * d[2] * rows;
  return {view.data + half * all * width, view.type, d[2] * rows, rows, d[4]};
}

void set_mask(const RunContext& c, AttentionProblem& p, int64_t past, int64_t total) {
  const auto& a = c.attrs<ProjectedAttrs>();
  p.padding.filter = a.filter;
  if (!c.has_input(kInputs.mask)) return;
  const TensorView& mask = c.inputs[kInputs.mask];
  if (mask.rank() == 2 && mask.dims[1] == 1) return;  // no mask; and one key alone is seen in any case
  if (mask.rank() < 4) {
    p.padding = padding_at_run(c, kInputs.mask, p.batch, total, a.filter);
    return;
  }
  const int64_t most = mask.dims[3];
  if (most < total)
    fail(ErrorCode::kInvalidArgument, "{}: expected a mask of at least {} keys, found shape {}",
         c.node->label(), total, to_string(mask.dims));
  p.padding.flags = mask.as<int32_t>() + past * most;
  p.padding.query = most, p.padding.batch = most * most;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<ProjectedAttrs>();
  const TensorView& x = c.inputs[0];
  AttentionProblem p(c, c.choice<AttentionChoice>());
  const int64_t width = a.width == 0 ? x.dims[2] / 3 : a.width;
  p.batch = x.dims[0], p.queries = p.keys = x.dims[1];
  p.q_heads = p.kv_heads = a.heads;
  p.head = width / a.heads, p.value_head = (x.dims[2] - 2 * width) / a.heads;
  p.q = rows_of_flat(x, p.head), p.k = rows_of_flat(x, p.head, width);
  p.v = rows_of_flat(x, p.value_head, 2 * width), p.y = rows_of_flat(c.outputs[0], p.value_head);
  int64_t past = 0;
  if (c.has_input(kInputs.past)) {
    const TensorView& cache = c.inputs[kInputs.past];
    p.past_k = half_of_cache(cache, 0), p.past_v = half_of_cache(cache, 1);
    past = a.shares ? length_at_run(c, kInputs.past_length) : cache.dims[3];
  }
  if (c.has_output(1))
    p.present_k = half_of_cache(c.outputs[1], 0), p.present_v = half_of_cache(c.outputs[1], 1);
  p.present_rows = p.choice.most_rows;
  p.keeps_rest = a.shares && c.has_input(kInputs.past);
  const int64_t total = past + p.keys;
  if (past < 0 || total > p.choice.most_rows)
    fail(ErrorCode::kInvalidArgument, "{}: past_sequence_length is {}, expected 0 to {}", c.node->label(),
         past, p.choice.most_rows - p.keys);
  for (int64_t b = 0; b < p.batch; ++b) p.lengths[b] = {past, total, total, past};
  p.scale = a.scale;
  p.causal = a.causal;
  set_mask(c, p, past, total);
  p.mask = attention_bias_at_run(c, kInputs.bias, total);
  run_attention_core(p);
}

Cost cost(const NodeContext& c) {
  const auto& a = c.attrs<ProjectedAttrs>();
  const auto x = c.dims(0);
  return attention_cost(c, x[0] * Dim(a.heads), x[1], rows_of(c, a), head_of(c, a) * Dim(2));
}

}  // namespace

extern const OpDef op_projected_attention = {
    .domain = kPlimsollDomain,
    .name = "ProjectedAttention",
    .inputs = {1, 5},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
