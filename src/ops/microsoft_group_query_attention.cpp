// Heads that share keys and values, over a cache that grows in place where the caller binds past and present
// to one buffer; otherwise what lies behind the new rows is 0, so that past is not to be overwritten.
#include <algorithm>

#include "ops/movement.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPastKey = 3, kPastValue = 4, kLengths = 5, kTotal = 6,
                 kCosine = 7, kSine = 8, kPositions = 9, kBias = 10, kSink = 11, kKeyScale = 12,
                 kValueScale = 13, kQueryNorm = 14, kKeyNorm = 15;

struct GroupQueryAttrs {
  int64_t heads = 1, kv_heads = 1, window = -1;
  std::optional<double> scale;
  float softcap = 0, epsilon = 1e-6f;
  bool causal = true, rotary = false, interleaved = false, smooth = false;
  ScoresStage stage = ScoresStage::kNone;
  int bits = 0;  // of a cache of integers
  bool by_channel = false;

  Dim cached_width(Dim head) const { return bits == 4 ? ceil_div(head, Dim(2)) : head; }
};

void read_quantized(AttrContext& c, GroupQueryAttrs& a) {
  const std::string_view type = c.text("k_quant_type", "NONE");
  if (type != "NONE" && type != "PER_TENSOR" && type != "PER_CHANNEL")
    c.reject("attribute 'k_quant_type': expected NONE, PER_TENSOR or PER_CHANNEL, found '{}'", type);
  if (const std::string_view other = c.text("v_quant_type", "NONE"); other != type)
    c.reject("v_quant_type is '{}', expected '{}' as k_quant_type", other, type);
  const int64_t bits = c.integer("kv_cache_bit_width", type == "NONE" ? 0 : 8);
  if (type == "NONE" ? bits != 0 : bits != 4 && bits != 8)
    c.reject("attribute 'kv_cache_bit_width': found {}, expected {}", bits,
             type == "NONE" ? "0 for a cache of floats" : "4 or 8");
  a.bits = static_cast<int>(bits);
  a.by_channel = type == "PER_CHANNEL";
  if (a.bits != 0 && (c.node().input(kKeyScale) == nullptr || c.node().input(kValueScale) == nullptr))
    c.reject("k_quant_type {} needs k_scale and v_scale", type);
  if (c.integer("sliding_window_cache", 0) != 0)
    fail(ErrorCode::kNotImplemented, "{}: sliding_window_cache", c.node().label());
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<GroupQueryAttrs>();
  a->heads = read_heads(c, "num_heads");
  a->kv_heads = read_heads(c, "kv_num_heads");
  if (a->heads % a->kv_heads != 0)
    c.reject("{} query heads are no multiple of {} key heads", a->heads, a->kv_heads);
  a->scale = read_scale(c);
  a->softcap = c.real("softcap", 0.0f);
  a->causal = c.integer("causal", 1) != 0;
  a->window = c.integer("local_window_size", -1);
  if (a->window < -1) c.reject("attribute 'local_window_size': expected at least -1, found {}", a->window);
  if (!a->causal && a->window != -1) c.reject("local_window_size needs causal attention");
  a->rotary = c.integer("do_rotary", 0) != 0;
  a->interleaved = c.integer("rotary_interleaved", 0) != 0;
  a->smooth = c.integer("smooth_softmax", 0) == 1;
  a->epsilon = c.real("qk_norm_epsilon", 1e-6f);
  const int64_t shown = c.integer("qk_output", 0);
  if (shown < 0 || shown > 2) c.reject("attribute 'qk_output': expected 0 to 2, found {}", shown);
  if (shown > 0) a->stage = shown == 1 ? ScoresStage::kMasked : ScoresStage::kProbabilities;
  read_quantized(c, *a);
  const Node& node = c.node();
  if (a->rotary && (node.input(kCosine) == nullptr || node.input(kSine) == nullptr))
    c.reject("do_rotary needs cos_cache and sin_cache");
  if ((node.input(kKey) == nullptr) != (node.input(kValue) == nullptr))
    c.reject("key and value are given together or not at all");
  if ((node.input(kPastKey) == nullptr) != (node.input(kPastValue) == nullptr))
    c.reject("past_key and past_value are given together or not at all");
  if ((node.input(kQueryNorm) == nullptr) != (node.input(kKeyNorm) == nullptr))
    c.reject("q_norm_weight and k_norm_weight are given together or not at all");
  const bool wants_scores = node.outputs.size() > 3 && node.outputs[3] != nullptr;
  if (wants_scores && a->stage == ScoresStage::kNone) c.reject("output 3 needs the attribute qk_output");
  return a;
}

struct GroupQueryShape {
  Dim batch, queries, keys, head, past;
};
GroupQueryShape shape_of(const NodeContext& c) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  const auto q = c.dims(kQuery);
  const bool packed = !c.has_input(kKey);
  GroupQueryShape s{q[0], q[1], packed ? q[1] : c.dims(kKey)[1], 0, 0};
  s.head = floor_div(q[2], Dim(packed ? a.heads + 2 * a.kv_heads : a.heads));
  if (c.has_input(kPastKey)) s.past = c.dims(kPastKey)[2];
  return s;
}

void check_types(const InferContext& c) {
  c.expect_type(kQuery, kAttentionTypes);
  const int bits = c.attrs<GroupQueryAttrs>().bits;
  for (size_t i : {kPastKey, kPastValue}) {
    if (!c.has_input(i)) continue;
    if (bits == 0) c.expect_same_type(kQuery, i);
    if (bits == 4) c.expect_type(i, types(ElementType::kUint8));
    if (bits == 8) c.expect_type(i, types(ElementType::kInt8, ElementType::kUint8));
  }
  for (size_t i : {kKeyScale, kValueScale}) {
    if (bits != 0) c.expect_type(i, types(ElementType::kFloat));
  }
  for (size_t i : {kKey, kValue, kCosine, kSine, kBias, kSink, kQueryNorm, kKeyNorm}) {
    if (c.has_input(i)) c.expect_same_type(kQuery, i);
  }
  c.expect_type(kLengths, types(ElementType::kInt32));
  c.expect_type(kTotal, types(ElementType::kInt32));
  if (c.has_input(kPositions)) c.expect_type(kPositions, types(ElementType::kInt64));
  for (size_t i : {kQuery, kKey, kValue}) {
    if (c.has_input(i)) c.expect_rank(i, 3, 3);
  }
  for (size_t i : {kPastKey, kPastValue}) {
    if (c.has_input(i)) c.expect_rank(i, 4, 4);
  }
}

void check_shape(const InferContext& c, const GroupQueryShape& s) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  const bool packed = !c.has_input(kKey);
  const int64_t parts = packed ? a.heads + 2 * a.kv_heads : a.heads;
  const Dim width = c.dims(kQuery)[2];
  if (width.is_constant() && width.value() % parts != 0)
    c.reject("input 0: {} cannot be divided into {} heads", width.value(), parts);
  if (!packed) {
    for (size_t i : {kKey, kValue}) {
      expect_dim(c, i, 0, s.batch);
      expect_dim(c, i, 1, s.keys);
      expect_dim(c, i, 2, s.head * Dim(a.kv_heads));
    }
    // No new keys at all: those of another layer are used.
    if (s.keys.is_constant() && s.queries.is_constant() && s.keys.value() != 0 && !(s.keys == s.queries))
      c.reject("{} keys for {} queries", s.keys.value(), s.queries.value());
  }
  for (size_t i : {kPastKey, kPastValue}) {
    if (!c.has_input(i)) continue;
    const Dim expected[] = {s.batch, a.kv_heads, s.past, a.cached_width(s.head)};
    for (size_t d = 0; d < 4; ++d) expect_dim(c, i, d, expected[d]);
  }
  if (a.rotary || c.has_input(kQueryNorm) || a.bits != 0) check_changed_head(c, s.head);
}

// A vector of `count` elements.
void expect_count(const InferContext& c, size_t i, Dim count) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const Dim found = product(c.dims(i));
  if (found.is_constant() && count.is_constant() && !(found == count))
    c.reject("input {}: expected {} elements, found shape {}", i, count.value(), to_string(c.dims(i)));
}

void check_others(const InferContext& c, const GroupQueryShape& s) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  expect_count(c, kLengths, s.batch);
  expect_count(c, kTotal, 1);
  expect_count(c, kSink, a.heads);
  expect_count(c, kQueryNorm, s.head);
  expect_count(c, kKeyNorm, s.head);
  expect_count(c, kPositions, s.batch * s.queries);
  if (a.bits != 0) {
    for (size_t i : {kKeyScale, kValueScale})
      expect_count(c, i, a.by_channel ? s.head * Dim(a.kv_heads) : Dim(1));
  }
  check_attention_bias(c, kBias, s.batch, a.heads, s.queries, std::nullopt);
  if (!a.rotary) return;
  for (size_t i : {kCosine, kSine}) {
    c.expect_rank(i, 2, 2);
    if (!c.ranked(i)) return;
    const Dim pairs = c.dims(i)[1];
    if (pairs.is_constant() && s.head.is_constant() && 2 * pairs.value() > s.head.value())
      c.reject("input {}: {} angles are too many for a head of {}", i, pairs.value(), s.head.value());
  }
  expect_dim(c, kSine, 1, c.dims(kCosine)[1]);
}

bool is_ranked(const NodeContext& c) {
  for (size_t i : {kQuery, kKey, kValue, kPastKey, kPastValue}) {
    if (c.has_input(i) && !c.ranked(i)) return false;
  }
  return true;
}

ElementType cache_type(const NodeContext& c) {
  const int bits = c.attrs<GroupQueryAttrs>().bits;
  if (bits == 0) return c.type(kQuery);
  if (c.has_input(kPastKey)) return c.type(kPastKey);
  return bits == 4 ? ElementType::kUint8 : ElementType::kInt8;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  check_types(c);
  if (!is_ranked(c)) {
    for (size_t i = 0; i < c.output_count(); ++i)
      c.set_unranked_output(i, i == 1 || i == 2 ? cache_type(c) : c.type(kQuery));
    return;
  }
  const GroupQueryShape s = shape_of(c);
  check_shape(c, s);
  check_others(c, s);
  const auto total = known_length_value(c, kTotal);
  if (total && total->is_constant() && total->value() < 1)
    c.reject("total_sequence_length is {}, expected at least 1", total->value());
  c.set_output(0, c.type(kQuery), std::vector<Dim>{s.batch, s.queries, s.head * Dim(a.heads)});
  const Dim rows = total                                ? max(*total, s.past)
                   : c.has_output(1) || c.has_output(2) ? c.unknown("present")
                                                        : Dim(0);
  const std::vector<Dim> present{s.batch, a.kv_heads, rows, a.cached_width(s.head)};
  c.set_output(1, cache_type(c), present);
  c.set_output(2, cache_type(c), present);
  if (c.has_output(3))
    c.set_output(3, c.type(kQuery),
                 std::vector<Dim>{s.batch, a.heads, s.queries, total ? *total : c.unknown("total")});
}

const void* select(SelectContext& c) {
  if (!is_ranked(c)) return nullptr;
  const auto& a = c.attrs<GroupQueryAttrs>();
  const GroupQueryShape s = shape_of(c);
  AttentionNeeds n{s.batch, s.queries, s.past + s.keys, s.head, s.head};
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (c.has_output(i) && c.output(i).type.ranked) n.rows = c.output(i).type.dims[2];
  }
  const bool narrow = c.type(kQuery) != ElementType::kFloat, past = c.has_input(kPastKey);
  const bool changes = a.rotary || c.has_input(kQueryNorm);
  n.copies_result = narrow;
  n.copies_query = narrow || changes;
  n.copies_keys = narrow || a.bits != 0 || ((changes || past) && !c.has_output(1));
  n.copies_values = narrow || a.bits != 0 || (past && !c.has_output(2));
  return choose_attention(c, n);
}

void set_rows(const RunContext& c, AttentionProblem& p) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  const TensorView& q = c.inputs[kQuery];
  const bool packed = !c.has_input(kKey);
  p.batch = q.dims[0], p.queries = q.dims[1];
  p.q_heads = a.heads, p.kv_heads = a.kv_heads;
  p.head = p.value_head = q.dims[2] / (packed ? a.heads + 2 * a.kv_heads : a.heads);
  p.q = rows_of_flat(q, p.head);
  p.k = packed ? rows_of_flat(q, p.head, a.heads * p.head) : rows_of_flat(c.inputs[kKey], p.head);
  p.v = packed ? rows_of_flat(q, p.head, (a.heads + a.kv_heads) * p.head)
               : rows_of_flat(c.inputs[kValue], p.head);
  p.keys = packed ? p.queries : c.inputs[kKey].dims[1];
  p.y = rows_of_flat(c.outputs[0], p.head);
  if (c.has_input(kPastKey)) p.past_k = rows_of_heads(c.inputs[kPastKey]);
  if (c.has_input(kPastValue)) p.past_v = rows_of_heads(c.inputs[kPastValue]);
  if (c.has_output(1)) p.present_k = rows_of_heads(c.outputs[1]);
  if (c.has_output(2)) p.present_v = rows_of_heads(c.outputs[2]);
  p.present_rows = p.choice.most_rows;
  if (a.bits == 0) return;
  for (HeadRows* cache : {&p.past_k, &p.present_k})
    cache->scales = {c.inputs[kKeyScale].as<float>(), a.by_channel, a.bits};
  for (HeadRows* cache : {&p.past_v, &p.present_v})
    cache->scales = {c.inputs[kValueScale].as<float>(), a.by_channel, a.bits};
}

// Keys of every batch are right-padded in a first prompt; afterwards each has its own length.
void set_lengths(const RunContext& c, AttentionProblem& p, bool is_prompt) {
  const bool has_past = c.has_input(kPastKey);
  const int64_t capacity = has_past ? c.inputs[kPastKey].dims[2] : 0;
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t total = int64_t{c.inputs[kLengths].as<int32_t>()[b]} + 1;
    if (total < 1 || total > p.choice.most_rows)
      fail(ErrorCode::kInvalidArgument, "{}: seqlens_k[{}] is {}, expected 0 to {}", c.node->label(), b,
           total - 1, p.choice.most_rows - 1);
    BatchLengths& l = p.lengths[b];
    l = {0, total, total, 0};
    if (!has_past) continue;
    if (!is_prompt) l.position = total - p.queries;
    if (p.keys == 0) l.past = total;
    if (p.keys > 0 && !is_prompt) l.past = l.position;
    if (l.position < 0 || l.past > capacity)
      fail(ErrorCode::kInvalidArgument, "{}: seqlens_k[{}] is {}: {} queries, and {} past keys of {}",
           c.node->label(), b, total - 1, p.queries, l.past, capacity);
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<GroupQueryAttrs>();
  AttentionProblem p(c, c.choice<AttentionChoice>());
  set_rows(c, p);
  const int64_t total = length_at_run(c, kTotal);
  if (total < 1)
    fail(ErrorCode::kInvalidArgument, "{}: total_sequence_length is {}, expected at least 1", c.node->label(),
         total);
  const bool is_prompt = total == p.queries;
  set_lengths(c, p, is_prompt);
  AttentionRotary rotary;
  if (a.rotary) {
    rotary = {&c.inputs[kCosine], &c.inputs[kSine], a.interleaved};
    if (c.has_input(kPositions)) rotary.positions = c.inputs[kPositions].as<int64_t>();
    rotary.first_only = is_prompt;
    p.change_q.rotary = p.change_k.rotary = &rotary;
  }
  if (c.has_input(kQueryNorm)) {
    p.change_q.norm = &c.inputs[kQueryNorm], p.change_k.norm = &c.inputs[kKeyNorm];
    p.change_q.epsilon = p.change_k.epsilon = a.epsilon;
  }
  p.scale = a.scale, p.softcap = a.softcap;
  p.causal = a.causal, p.window = a.window;
  int64_t most = 0;
  for (int64_t b = 0; b < p.batch; ++b) most = std::max(most, p.lengths[b].visible);
  p.mask = attention_bias_at_run(c, kBias, most);
  p.has_sink = a.smooth || c.has_input(kSink);
  if (c.has_input(kSink)) p.sink = &c.inputs[kSink];
  if (c.has_output(3)) p.scores = {a.stage, &c.outputs[3], 0};
  run_attention_core(p);
}

Cost cost(const NodeContext& c) {
  const GroupQueryShape s = shape_of(c);
  return attention_cost(c, s.batch * Dim(c.attrs<GroupQueryAttrs>().heads), s.queries, max(s.past, s.keys),
                        s.head + s.head);
}

}  // namespace

extern const OpDef op_microsoft_group_query_attention = {
    .domain = kMicrosoftDomain,
    .name = "GroupQueryAttention",
    .inputs = {7, 16},
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .optional_inputs = 0b11110,
};

}  // namespace plimsoll
