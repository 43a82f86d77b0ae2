#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "ops/attention_core.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kQ = 0, kK = 1, kV = 2, kMask = 3, kPastK = 4, kPastV = 5, kValid = 6;

struct AttentionAttrs {
  int64_t q_heads = 0, kv_heads = 0;  // of 3-D inputs
  bool causal = false;
  int64_t left = -1, right = -1;
  ScoresStage stage = ScoresStage::kProducts;  // of output 3
  bool has_scale = false, double_softmax = false;
  float scale = 0, softcap = 0;
};

// Sizes as dimensions, for 3-D and 4-D inputs alike.
struct AttentionShape {
  Dim batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  Dim total() const { return past + keys; }
};

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
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) c.reject("attribute 'qk_matmul_output_mode': expected 0 to 3, found {}", mode);
  constexpr ScoresStage kModes[] = {ScoresStage::kProducts, ScoresStage::kCapped, ScoresStage::kMasked,
                                    ScoresStage::kProbabilities};
  a->stage = kModes[mode];
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
  return c.has_input(kPastK);
}

// Ranks of Q, K and V, and of past keys, must be known.
AttentionShape attention_shape(const NodeContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  const auto q = c.dims(kQ), k = c.dims(kK), v = c.dims(kV);
  AttentionShape s;
  s.batch = q[0];
  s.past = has_past(c) ? c.dims(kPastK)[2] : Dim(0);
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

void check_types(const InferContext& c) {
  c.expect_type(kQ, kFloatTypes);
  c.expect_same_type(kQ, kK);
  c.expect_type(kV, kFloatTypes);
  if (c.has_input(kMask)) c.expect_type(kMask, kNumericTypes | kBoolType);
  if (c.has_input(kPastK) != c.has_input(kPastV))
    c.reject("past_key and past_value are given together or not at all");
  if (has_past(c)) {
    c.expect_same_type(kQ, kPastK);
    c.expect_same_type(kV, kPastV);
    c.expect_rank(kPastK, 4, 4);
    c.expect_rank(kPastV, 4, 4);
  }
  if (!c.has_input(kValid)) return;
  c.expect_type(kValid, types(ElementType::kInt64));
  c.expect_rank(kValid, 1, 1);
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
  check_past(kPastK, s.head);
  check_past(kPastV, s.value_head);
  if (c.has_input(kValid) && c.ranked(kValid)) unify(c, c.dims(kValid)[0], s.batch);
  if (!c.has_input(kMask) || !c.ranked(kMask)) return;
  c.expect_rank(kMask, 1, 4);
  const Dim full[] = {s.batch, s.q_heads, s.queries, s.total()};
  const auto mask = c.dims(kMask);
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
                      (!has_past(c) || (c.ranked(kPastK) && c.ranked(kPastV)));
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

bool in_double(ElementType q, ElementType v) {
  return q == ElementType::kDouble || v == ElementType::kDouble;
}

const void* select(SelectContext& c) {
  if (!c.ranked(kQ) || !c.ranked(kK) || !c.ranked(kV) || (has_past(c) && !c.ranked(kPastK))) return nullptr;
  const AttentionShape s = attention_shape(c);
  AttentionNeeds n{s.batch, s.queries, s.total(), s.head, s.value_head};
  n.in_double = in_double(c.type(kQ), c.type(kV));
  const ElementType wide = n.in_double ? ElementType::kDouble : ElementType::kFloat;
  n.copies_query = n.copies_result = c.type(kQ) != wide;
  // Keys and values in one piece and in the right type are read where they are.
  n.copies_keys = c.type(kQ) != wide || (has_past(c) && !c.has_output(1));
  n.copies_values = c.type(kV) != wide || (has_past(c) && !c.has_output(2));
  return choose_attention(c, n);
}

HeadRows rows(const TensorView& view, int64_t heads) {
  return view.rank() == 3 ? rows_of_flat(view, view.dims[2] / heads) : rows_of_heads(view);
}

void set_sizes(const RunContext& c, AttentionProblem& p) {
  const auto& a = c.attrs<AttentionAttrs>();
  const TensorView &q = c.inputs[kQ], &k = c.inputs[kK], &v = c.inputs[kV];
  const bool flat = q.rank() == 3;
  p.batch = q.dims[0];
  p.q_heads = flat ? a.q_heads : q.dims[1];
  p.kv_heads = flat ? a.kv_heads : k.dims[1];
  p.queries = q.dims[flat ? 1 : 2];
  p.keys = k.dims[flat ? 1 : 2];
  p.head = flat ? q.dims[2] / a.q_heads : q.dims[3];
  p.value_head = flat ? v.dims[2] / a.kv_heads : v.dims[3];
  p.q = rows(q, p.q_heads), p.k = rows(k, p.kv_heads), p.v = rows(v, p.kv_heads);
  p.y = rows(c.outputs[0], p.q_heads);
  if (c.has_input(kPastK)) {
    p.past_k = rows_of_heads(c.inputs[kPastK]);
    p.past_v = rows_of_heads(c.inputs[kPastV]);
  }
  if (c.has_output(1)) p.present_k = rows_of_heads(c.outputs[1]);
  if (c.has_output(2)) p.present_v = rows_of_heads(c.outputs[2]);
}

void set_lengths(const RunContext& c, AttentionProblem& p) {
  const int64_t past = c.has_input(kPastK) ? c.inputs[kPastK].dims[2] : 0, total = past + p.keys;
  p.present_rows = total;
  for (int64_t b = 0; b < p.batch; ++b) {
    p.lengths[b] = {past, total, total, past};
    if (!c.has_input(kValid)) continue;
    const int64_t valid = c.inputs[kValid].as<int64_t>()[b];
    if (valid < 0 || valid > total)
      fail(ErrorCode::kInvalidArgument, "{}: nonpad_kv_seqlen[{}] is {}, expected 0 to {}", c.node->label(),
           b, valid, total);
    p.lengths[b].visible = valid;
    p.lengths[b].position = valid - p.queries;
  }
  if (c.has_input(kMask)) p.mask = broadcast_mask(c.inputs[kMask], total);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  AttentionProblem p(c, c.choice<AttentionChoice>());
  set_sizes(c, p);
  set_lengths(c, p);
  if (a.has_scale) p.scale = a.scale;
  p.softcap = a.softcap;
  p.causal = a.causal, p.left = a.left, p.right = a.right;
  p.double_softmax = a.double_softmax;
  if (c.has_output(3)) p.scores = {a.stage, &c.outputs[3], -std::numeric_limits<double>::infinity()};
  run_attention_core(p);
}

Cost cost(const NodeContext& c) {
  const AttentionShape s = attention_shape(c);
  return attention_cost(c, s.batch * s.q_heads, s.queries, s.total(), s.head + s.value_head);
}

// ---- gradient: in nodes, probabilities computed anew -------------------------------------------------

// [batch, heads, rows, size], whatever the rank.
Edge* by_heads(const GradientContext& c, Edge* edge, int64_t heads) {
  if (edge->facts.type.rank() == 4) return edge;
  const int64_t perm[] = {0, 2, 1, 3};
  return c.op("Transpose", {c.op("Reshape", {edge, c.build.integers({0, 0, heads, -1})})},
              c.attributes().set("perm", std::span<const int64_t>(perm)));
}

Edge* as_it_was(const GradientContext& c, size_t i, Edge* edge) {
  if (c.rank(i) == 4) return edge;
  const int64_t perm[] = {0, 2, 1, 3};
  edge = c.op("Transpose", {edge}, c.attributes().set("perm", std::span<const int64_t>(perm)));
  return c.op("Reshape", {edge, c.shape_of(c.in(i))});
}

Edge* product(const GradientContext& c, Edge* a, Edge* b, bool trans_a, bool trans_b, float alpha = 1) {
  return c.own_op(
      "FusedMatMul", {a, b},
      c.attributes().set("alpha", alpha).set("trans_a", int64_t{trans_a}).set("trans_b", int64_t{trans_b}));
}

// The same, times a scale that is no float where the product is of doubles.
Edge* scaled_product(const GradientContext& c, Edge* a, Edge* b, bool trans_a, bool trans_b, double scale) {
  if (a->facts.type.type != ElementType::kDouble)
    return product(c, a, b, trans_a, trans_b, static_cast<float>(scale));
  return c.op("Mul", {product(c, a, b, trans_a, trans_b), c.scalar(ElementType::kDouble, scale)});
}

// Adds a mask, or hides what is false in it.
Edge* masked(const GradientContext& c, Edge* scores, Edge* mask) {
  if (mask->facts.type.type == ElementType::kBool)
    return c.op("Where", {mask, scores, c.scalar(-std::numeric_limits<double>::infinity())});
  return c.op("Add", {scores, mask});
}

// Which keys each query sees, [queries, keys] or [batch, 1, queries, keys]; null if all.
Edge* visible(const GradientContext& c, Edge* scores) {
  const auto& a = c.attrs<AttentionAttrs>();
  if (!a.causal && a.left < 0 && a.right < 0 && !c.has_input(kValid)) return nullptr;
  const auto size = [&](int64_t axis) {
    Edge* one = c.op("Shape", {scores}, c.attributes().set("start", axis).set("end", axis + 1));
    return c.op("Squeeze", {one});
  };
  const auto numbers = [&](Edge* count) {
    return c.op("Range", {c.build.scalar(int64_t{0}), count, c.build.scalar(int64_t{1})});
  };
  Edge *queries = size(2), *keys = size(3), *key = numbers(keys);
  Edge *seen = nullptr, *first = c.build.scalar(int64_t{0});  // the first query's place
  const auto also = [&](Edge* condition) {
    seen = seen == nullptr ? condition : c.op("And", {seen, condition});
  };
  if (has_past(c)) {
    Edge* past =
        c.op("Shape", {c.in(kPastK)}, c.attributes().set("start", int64_t{2}).set("end", int64_t{3}));
    first = c.op("Squeeze", {past});
  } else if (c.has_input(kValid)) {
    Edge* valid = c.op("Reshape", {c.in(kValid), c.build.integers({-1, 1, 1, 1})});
    first = c.op("Sub", {valid, queries});
    also(c.op("Less", {key, valid}));
  }
  Edge* place = c.op("Add", {first, c.op("Unsqueeze", {numbers(queries), c.build.integers({1})})});
  if (a.causal) also(c.op("LessOrEqual", {key, place}));
  if (a.left >= 0) also(c.op("GreaterOrEqual", {key, c.op("Sub", {place, c.build.scalar(a.left)})}));
  if (a.right >= 0) also(c.op("LessOrEqual", {key, c.op("Add", {place, c.build.scalar(a.right)})}));
  return seen;
}

// Of keys or values: what was given and what came before them. `whole` is of both.
void set_parts(GradientContext& c, size_t given, size_t past, Edge* whole) {
  if (!has_past(c)) return c.set(given, as_it_was(c, given, whole));
  Edge* length = c.op("Shape", {c.in(past)}, c.attributes().set("start", int64_t{2}).set("end", int64_t{3}));
  Edge* axis = c.build.integers({2});
  if (c.wants(past)) c.set(past, c.op("Slice", {whole, c.build.integers({0}), length, axis}));
  if (!c.wants(given)) return;
  Edge* end = c.build.integers({std::numeric_limits<int64_t>::max()});
  c.set(given, as_it_was(c, given, c.op("Slice", {whole, length, end, axis})));
}

void check_gradient(const GradientContext& c, const AttentionShape& s) {
  if (c.gradient(3) != nullptr) c.reject("its output 3 cannot be differentiated");
  for (Dim d : {s.q_heads, s.kv_heads, s.head}) {
    if (!d.is_constant()) c.reject("its gradient needs the number and the size of heads");
  }
  if (!c.has_input(kMask) || !c.ranked(kMask) || c.rank(kMask) == 0) return;
  const Dim keys = c.dims(kMask).back(), expected = s.total();
  if (keys.is_constant() && expected.is_constant() && keys != Dim(1) && keys.value() < expected.value())
    c.reject("its gradient does not know masks of fewer keys");
}

// Heads of queries that share keys are rows of one matrix: [batch, key heads, their queries, size].
void gradient(GradientContext& c) {
  const auto& a = c.attrs<AttentionAttrs>();
  if (!c.ranked(kQ) || !c.ranked(kK) || !c.ranked(kV) ||
      (has_past(c) && (!c.ranked(kPastK) || !c.ranked(kPastV))))
    c.reject("its gradient needs the ranks of its inputs");
  const AttentionShape s = attention_shape(c);
  check_gradient(c, s);
  const int64_t q_heads = s.q_heads.value(), kv_heads = s.kv_heads.value();
  const double scale = a.has_scale ? double{a.scale} : 1 / std::sqrt(static_cast<double>(s.head.value()));
  const auto with_heads = [&](Edge* edge, int64_t heads) {
    return q_heads == kv_heads ? edge : c.op("Reshape", {edge, c.build.integers({0, heads, -1, 0})});
  };
  const auto whole = [&](size_t given, size_t past) {
    Edge* edge = by_heads(c, c.in(given), kv_heads);
    return has_past(c) ? c.op("Concat", {c.in(past), edge}, c.attributes().set("axis", int64_t{2})) : edge;
  };
  Edge *q = with_heads(by_heads(c, c.in(kQ), q_heads), kv_heads), *k = whole(kK, kPastK),
       *v = whole(kV, kPastV);
  Edge *of_keys = c.gradient(1), *of_values = c.gradient(2);
  const auto sum = [&](Edge* one, Edge* other) {
    return one == nullptr ? other : other == nullptr ? one : c.op("Add", {one, other});
  };
  if (c.gradient(0) != nullptr) {
    Edge* dy = with_heads(by_heads(c, c.gradient(0), q_heads), kv_heads);
    Edge* scores = with_heads(scaled_product(c, q, k, false, true, scale), q_heads);
    Edge* capped = nullptr;  // between -1 and 1
    if (a.softcap != 0) {
      capped = c.op("Tanh", {c.op("Div", {scores, c.scalar(double{a.softcap})})});
      scores = c.op("Mul", {capped, c.scalar(double{a.softcap})});
    }
    if (c.has_input(kMask)) scores = masked(c, scores, c.in(kMask));
    if (Edge* seen = visible(c, scores)) scores = masked(c, scores, seen);
    Edge* probabilities = c.op("Softmax", {scores}, c.attributes().set("axis", int64_t{-1}));
    Edge* weights = with_heads(probabilities, kv_heads);
    of_values = sum(of_values, product(c, weights, dy, true, false));
    Edge* of_scores =
        c.own_op("SoftmaxGradient", {probabilities, with_heads(product(c, dy, v, false, true), q_heads)},
                 c.attributes().set("axis", int64_t{-1}));
    if (c.wants(kMask)) c.set_broadcast(kMask, of_scores);
    if (capped != nullptr)
      of_scores = c.op("Mul", {of_scores, c.op("Sub", {c.scalar(1), c.op("Mul", {capped, capped})})});
    of_scores = with_heads(of_scores, kv_heads);
    if (c.wants(kQ))
      c.set(kQ, as_it_was(c, kQ, with_heads(scaled_product(c, of_scores, k, false, false, scale), q_heads)));
    of_keys = sum(of_keys, scaled_product(c, of_scores, q, true, false, scale));
  }
  if (of_keys != nullptr && (c.wants(kK) || c.wants(kPastK))) set_parts(c, kK, kPastK, of_keys);
  if (of_values != nullptr && (c.wants(kV) || c.wants(kPastV))) set_parts(c, kV, kPastV, of_values);
}

}  // namespace

extern const OpDef op_attention = {
    .name = "Attention",
    .inputs = {3, 7},
    .outputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
