#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kQ = kAttentionQ, kK = kAttentionK, kV = kAttentionV;

int64_t read_window_size(AttrContext& c, std::string_view name) {
  const int64_t size = c.integer(name, -1);
  if (size < -1) c.reject("attribute '{}': expected at least -1, found {}", name, size);
  return std::min<int64_t>(size, INT32_MAX);
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<AttentionAttrs>();
  a->q_heads = c.integer("q_num_heads", 0);
  a->kv_heads = c.integer("kv_num_heads", 0);
  if (a->q_heads < 0 || a->kv_heads < 0)
    c.reject("q_num_heads {} and kv_num_heads {}: expected at least 1", a->q_heads, a->kv_heads);
  a->causal = c.integer("is_causal", 0) != 0;
  a->has_scale = c.has("scale");
  if (a->has_scale) a->scale = c.real("scale");
  a->softcap = c.real("softcap", 0.0f);
  a->scores_mode = c.integer("qk_matmul_output_mode", 0);
  if (a->scores_mode < 0 || a->scores_mode > 3)
    c.reject("attribute 'qk_matmul_output_mode': expected 0 to 3, found {}", a->scores_mode);
  // Float at least is what softmax is computed in, whatever less is asked for.
  const int64_t precision = c.integer("softmax_precision", 1);
  if (precision < 0 || precision > 31 || !kFloatTypes.contains(static_cast<ElementType>(precision)))
    c.reject("attribute 'softmax_precision': expected a float type, found {}", precision);
  a->double_softmax = static_cast<ElementType>(precision) == ElementType::kDouble;
  if (c.opset() >= 25) {
    a->left = read_window_size(c, "left_window_size");
    a->right = read_window_size(c, "right_window_size");
  }
  if (c.opset() < 24 && c.node().inputs.size() > 6) c.reject("expected 6 inputs (opset {})", c.opset());
  return a;
}

bool has_past(const NodeContext& c) {
  return c.has_input(kAttentionPastK);
}

void check_types(const InferContext& c) {
  c.expect_type(kQ, kFloatTypes);
  c.expect_same_type(kQ, kK);
  c.expect_type(kV, kFloatTypes);
  if (c.has_input(kAttentionMask)) c.expect_type(kAttentionMask, kNumericTypes | kBoolType);
  if (c.has_input(kAttentionPastK) != c.has_input(kAttentionPastV))
    c.reject("past_key and past_value are given together or not at all");
  if (has_past(c)) {
    c.expect_same_type(kQ, kAttentionPastK);
    c.expect_same_type(kV, kAttentionPastV);
    c.expect_rank(kAttentionPastK, 4, 4);
    c.expect_rank(kAttentionPastV, 4, 4);
  }
  if (!c.has_input(kAttentionValid)) return;
  c.expect_type(kAttentionValid, types(ElementType::kInt64));
  c.expect_rank(kAttentionValid, 1, 1);
  if (has_past(c)) c.reject("nonpad_kv_seqlen cannot be combined with past_key and past_value");
}

void check_ranks(const InferContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  c.expect_rank(kQ, 3, 4);
  c.expect_rank(kK, c.rank(kQ), c.rank(kQ));
  c.expect_rank(kV, c.rank(kQ), c.rank(kQ));
  if (c.rank(kQ) == 3 && (a.q_heads == 0 || a.kv_heads == 0))
    c.reject("3-D inputs need the attributes q_num_heads and kv_num_heads");
  if (c.rank(kQ) == 4 && c.opset() >= 25 && (a.q_heads != 0 || a.kv_heads != 0))
    c.reject("q_num_heads and kv_num_heads are for 3-D inputs");
  if (c.rank(kQ) == 4) return;
  for (size_t i : {kQ, kK, kV}) {
    const Dim hidden = c.dims(i)[2];
    const int64_t heads = i == kQ ? a.q_heads : a.kv_heads;
    if (hidden.is_constant() && hidden.value() % heads != 0)
      c.reject("input {}: {} cannot be divided into {} heads", i, hidden.value(), heads);
  }
}

void check_shape(const InferContext& c, const AttentionShape& s) {
  const bool flat = c.rank(kQ) == 3;
  const size_t sequence = flat ? 1 : 2;
  unify(c, c.dims(kK)[0], s.batch);
  unify(c, c.dims(kV)[0], s.batch);
  unify(c, c.dims(kV)[sequence], s.keys);
  if (!flat) {
    unify(c, c.dims(kK)[3], s.head);
    unify(c, c.dims(kV)[1], s.kv_heads);
  } else {
    unify(c, floor_div(c.dims(kK)[2], s.kv_heads), s.head);
  }
  if (s.q_heads.is_constant() && s.kv_heads.is_constant() &&
      (s.kv_heads.value() == 0 || s.q_heads.value() % s.kv_heads.value() != 0))
    c.reject("{} query heads are no multiple of {} key heads", s.q_heads.value(), s.kv_heads.value());
  const auto check_past = [&](size_t i, Dim head) {
    if (!has_past(c) || !c.ranked(i)) return;
    const Dim expected[] = {s.batch, s.kv_heads, s.past, head};
    for (size_t d = 0; d < 4; ++d) unify(c, c.dims(i)[d], expected[d]);
  };
  check_past(kAttentionPastK, s.head);
  check_past(kAttentionPastV, s.value_head);
  if (c.has_input(kAttentionValid) && c.ranked(kAttentionValid))
    unify(c, c.dims(kAttentionValid)[0], s.batch);
  if (!c.has_input(kAttentionMask) || !c.ranked(kAttentionMask)) return;
  c.expect_rank(kAttentionMask, 1, 4);
  const Dim full[] = {s.batch, s.q_heads, s.queries, s.total()};
  const auto mask = c.dims(kAttentionMask);
  for (size_t i = 0; i < mask.size(); ++i) {
    const Dim expected = full[4 - mask.size() + i], found = mask[i];
    if (!found.is_constant() || !expected.is_constant() || found == Dim(1) || found == expected) continue;
    const bool may_be_short = i + 1 == mask.size() && c.opset() >= 24;  // what is missing is masked out
    if (!may_be_short || found.value() > expected.value())
      c.reject("attn_mask of shape {} cannot be broadcast to {}", to_string(mask), to_string(full));
  }
}

void infer(InferContext& c) {
  check_types(c);
  const bool ranked = c.ranked(kQ) && c.ranked(kK) && c.ranked(kV) &&
                      (!has_past(c) || (c.ranked(kAttentionPastK) && c.ranked(kAttentionPastV)));
  if (!ranked) {
    for (size_t i : {0, 1, 2, 3}) c.set_unranked_output(i, c.type(i == 2 ? kV : kQ));
    return;
  }
  check_ranks(c);
  const AttentionShape s = attention_shape(c);
  check_shape(c, s);
  c.set_output(0, c.type(kQ),
               c.rank(kQ) == 3 ? std::vector<Dim>{s.batch, s.queries, s.q_heads * s.value_head}
                               : std::vector<Dim>{s.batch, s.q_heads, s.queries, s.value_head});
  c.set_output(1, c.type(kQ), std::vector<Dim>{s.batch, s.kv_heads, s.total(), s.head});
  c.set_output(2, c.type(kV), std::vector<Dim>{s.batch, s.kv_heads, s.total(), s.value_head});
  c.set_output(3, c.type(kQ), std::vector<Dim>{s.batch, s.q_heads, s.queries, s.total()});
}

const void* select(SelectContext& c) {
  if (!c.ranked(kQ) || !c.ranked(kK) || !c.ranked(kV)) return nullptr;
  const Dim width = computes_in_double(c.type(kQ), c.type(kV)) ? 8 : 4;
  c.scratch(Dim(c.threads) * attention_layout(c).total() * width);
  return nullptr;
}

const void* bind(BindContext& c) {
  const AttentionShape s = attention_shape(c);
  const AttentionLayout l = attention_layout(c);
  auto* b = c.make<BoundAttention>();
  b->batch = s.batch.value(), b->q_heads = s.q_heads.value(), b->kv_heads = s.kv_heads.value();
  b->queries = s.queries.value(), b->keys = s.keys.value(), b->past = s.past.value();
  b->head = s.head.value(), b->value_head = s.value_head.value();
  b->scores = l.scores.value(), b->query = l.query.value(), b->result = l.result.value();
  b->key_copy = l.keys.value(), b->value_copy = l.values.value();
  b->packed_keys = l.packed_keys.value(), b->packed_values = l.packed_values.value();
  b->per_thread = l.total().value();
  b->packs = b->packed_keys > 0;
  return b;
}

Cost cost(const NodeContext& c) {
  const AttentionShape s = attention_shape(c);
  const double pairs = static_cast<double>((s.batch * s.q_heads).value()) *
                       static_cast<double>(s.queries.value()) * static_cast<double>(s.total().value());
  const double operations = pairs * (2.0 * static_cast<double>((s.head + s.value_head).value()) + 20);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

bool computes_in_double(ElementType q, ElementType v) {
  return q == ElementType::kDouble || v == ElementType::kDouble;
}

AttentionShape attention_shape(const NodeContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  const auto q = c.dims(kQ), k = c.dims(kK), v = c.dims(kV);
  AttentionShape s;
  s.batch = q[0];
  s.past = has_past(c) ? c.dims(kAttentionPastK)[2] : Dim(0);
  if (q.size() == 3) {
    s.q_heads = a.q_heads, s.kv_heads = a.kv_heads;
    s.queries = q[1], s.keys = k[1];
    s.head = floor_div(q[2], s.q_heads), s.value_head = floor_div(v[2], s.kv_heads);
  } else {
    s.q_heads = q[1], s.kv_heads = k[1];
    s.queries = q[2], s.keys = k[2];
    s.head = q[3], s.value_head = v[3];
  }
  return s;
}

AttentionLayout attention_layout(const NodeContext& c) {
  const AttentionShape s = attention_shape(c);
  const bool in_double = computes_in_double(c.type(kQ), c.type(kV));
  const ElementType wide = in_double ? ElementType::kDouble : ElementType::kFloat;
  const auto aligned = [](Dim count) { return ceil_div(count, Dim(16)) * Dim(16); };
  const Dim rows = s.queries.is_constant() ? Dim(std::min(s.queries.value(), kAttentionTile))
                                           : min(s.queries, Dim(kAttentionTile));
  AttentionLayout l;
  l.scores = aligned(rows * s.total());
  l.query = c.type(kQ) == wide ? Dim(0) : aligned(rows * s.head);
  l.result = c.type(kQ) == wide ? Dim(0) : aligned(rows * s.value_head);
  // Keys and values in one piece and in the right type are read where they are.
  const bool pieces = has_past(c);
  if (c.type(kQ) != wide || (pieces && !c.has_output(1))) l.keys = aligned(s.total() * s.head);
  if (c.type(kV) != wide || (pieces && !c.has_output(2))) l.values = aligned(s.total() * s.value_head);
  const bool few = s.queries.is_constant() && s.queries.value() < kAttentionFewQueries;
  if (few) return l;
  const Dim panel = in_double ? kernels::packed_b_format<double>() : kernels::packed_b_format<float>();
  l.packed_keys = aligned(ceil_div(s.total(), panel) * panel * s.head);
  l.packed_values = aligned(ceil_div(s.value_head, panel) * panel * s.total());
  return l;
}

extern const OpDef op_attention = {
    .name = "Attention",
    .inputs = {3, 7},
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .bind = bind,
    .run = run_attention,
    .cost = cost,
};

}  // namespace plimsoll
