// Attention as exporters write it out, which recognize_attention makes of its nodes:
//   softmax(scale * Q K' + addend, where the condition does not fill) V
// Q, K, V and Y are [heads, rows, size] or [batch, heads, rows, size], each seen through a permutation that
// keeps the last dimension.
#include <algorithm>
#include <array>

#include "ops/attention_core.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kQ = 0, kK = 1, kV = 2, kAddend = 3, kCondition = 4;

struct FusedAttentionAttrs {
  float scale = 1;
  std::span<const int64_t> perm_q, perm_k, perm_v, perm_y;  // empty: as they are
  bool nan_is_zero = false;                                 // of probabilities
  bool fills_where = false;                                 // what the condition says of a score to be filled
  float fill = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<FusedAttentionAttrs>();
  a->scale = c.real("scale", 1.0f);
  a->perm_q = c.integers("perm_q");
  a->perm_k = c.integers("perm_k");
  a->perm_v = c.integers("perm_v");
  a->perm_y = c.integers("perm_y");
  a->nan_is_zero = c.integer("nan_is_zero", 0) != 0;
  a->fills_where = c.integer("fills_where", 0) != 0;
  a->fill = c.real("fill", 0.0f);
  return a;
}

std::span<const int64_t> perm_of(const NodeContext& c, size_t i) {
  const auto& a = c.attrs<FusedAttentionAttrs>();
  return i == kQ ? a.perm_q : i == kK ? a.perm_k : a.perm_v;
}

void check_perm(const InferContext& c, std::span<const int64_t> perm, size_t rank) {
  if (perm.empty()) return;
  std::vector<int64_t> sorted(perm.begin(), perm.end());
  std::sort(sorted.begin(), sorted.end());
  bool fits = perm.size() == rank && perm.back() == static_cast<int64_t>(rank) - 1;
  for (size_t i = 0; fits && i < rank; ++i) fits = sorted[i] == static_cast<int64_t>(i);
  if (!fits)
    c.reject("expected a permutation of {} dimensions that keeps the last, found {}", rank, to_string(perm));
}

std::vector<Dim> permuted(std::span<const Dim> of, std::span<const int64_t> perm) {
  std::vector<Dim> made(of.begin(), of.end());
  for (size_t i = 0; i < perm.size(); ++i) made[i] = of[static_cast<size_t>(perm[i])];
  return made;
}

// As [batch, heads, rows, size].
std::array<Dim, 4> seen(const NodeContext& c, size_t i) {
  const std::vector<Dim> dims = permuted(c.dims(i), perm_of(c, i));
  std::array<Dim, 4> four = {1, 1, 1, 1};
  std::copy(dims.rbegin(), dims.rend(), four.rbegin());
  return four;
}

void expect_broadcast(const InferContext& c, size_t i, std::span<const Dim> to) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const auto from = c.dims(i);
  bool fits = from.size() <= to.size();
  for (size_t d = 0; fits && d < from.size(); ++d) {
    const Dim found = from[from.size() - 1 - d], wanted = to[to.size() - 1 - d];
    fits = !found.is_constant() || found == Dim(1) || !wanted.is_constant() || found == wanted;
  }
  if (!fits) c.reject("input {}: expected to broadcast to {}, found {}", i, to_string(to), to_string(from));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<FusedAttentionAttrs>();
  c.expect_type(kQ, kFloatTypes);
  c.expect_same_type(kQ, kK);
  c.expect_same_type(kQ, kV);
  if (c.has_input(kAddend)) c.expect_same_type(kQ, kAddend);
  if (c.has_input(kCondition)) c.expect_type(kCondition, kBoolType);
  if (!c.ranked(kQ) || !c.ranked(kK) || !c.ranked(kV)) return c.set_unranked_output(0, c.type(kQ));
  const size_t rank = c.rank(kQ);
  for (const size_t i : {kQ, kK, kV}) {
    c.expect_rank(i, std::max<size_t>(rank, 3), std::min<size_t>(rank, 4));
    check_perm(c, perm_of(c, i), rank);
  }
  check_perm(c, a.perm_y, rank);
  const auto q = seen(c, kQ), k = seen(c, kK), v = seen(c, kV);
  for (const size_t d : {0, 1}) {
    unify(c, k[d], q[d]);
    unify(c, v[d], q[d]);
  }
  unify(c, k[3], q[3]);
  unify(c, v[2], k[2]);
  const Dim scores[] = {q[0], q[1], q[2], k[2]};
  for (const size_t i : {kAddend, kCondition}) expect_broadcast(c, i, std::span(scores).last(rank));
  const Dim y[] = {q[0], q[1], q[2], v[3]};
  c.set_output(0, c.type(kQ), permuted(std::span<const Dim>(y).last(rank), a.perm_y));
}

const void* select(SelectContext& c) {
  if (!c.ranked(kQ) || !c.ranked(kK) || !c.ranked(kV)) return nullptr;
  const auto q = seen(c, kQ), k = seen(c, kK), v = seen(c, kV);
  AttentionNeeds n{q[0], q[2], k[2], q[3], v[3]};
  n.in_double = c.type(kQ) == ElementType::kDouble;
  const bool copies = !n.in_double && c.type(kQ) != ElementType::kFloat;
  n.copies_query = n.copies_result = n.copies_keys = n.copies_values = copies;
  return choose_attention(c, n);
}

// A tensor as [batch, heads, rows, size]: its dimensions, and where its rows are.
struct Seen {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  HeadRows rows;
};

// `place_of(i)`: which dimension of the tensor is the i-th of those that are seen.
template <typename PlaceOf>
Seen seen_rows(const TensorView& view, const PlaceOf& place_of) {
  const size_t rank = view.rank();
  std::array<int64_t, 4> strides = {}, seen_strides = {};
  strides[rank - 1] = 1;
  for (size_t i = rank - 1; i > 0; --i) strides[i - 1] = strides[i] * view.dims[i];
  Seen s;
  for (size_t i = 0; i < rank; ++i) {
    s.dims[4 - rank + i] = view.dims[place_of(i)];
    seen_strides[4 - rank + i] = strides[place_of(i)];
  }
  s.rows = {view.data, view.type, seen_strides[0], seen_strides[1], seen_strides[2]};
  return s;
}

Seen seen_input(const TensorView& view, std::span<const int64_t> perm) {
  return seen_rows(view, [&](size_t i) { return perm.empty() ? i : static_cast<size_t>(perm[i]); });
}

Seen seen_output(const TensorView& view, std::span<const int64_t> perm) {
  return seen_rows(view, [&](size_t i) {
    return perm.empty() ? i : static_cast<size_t>(std::find(perm.begin(), perm.end(), i) - perm.begin());
  });
}

void run(const RunContext& c) {
  const auto& a = c.attrs<FusedAttentionAttrs>();
  AttentionProblem p(c, c.choice<AttentionChoice>());
  const Seen q = seen_input(c.inputs[kQ], a.perm_q), k = seen_input(c.inputs[kK], a.perm_k),
             v = seen_input(c.inputs[kV], a.perm_v), y = seen_output(c.outputs[0], a.perm_y);
  p.batch = q.dims[0], p.q_heads = p.kv_heads = q.dims[1], p.queries = q.dims[2], p.head = q.dims[3];
  p.keys = k.dims[2], p.value_head = v.dims[3];
  p.q = q.rows, p.k = k.rows, p.v = v.rows, p.y = y.rows;
  for (int64_t b = 0; b < p.batch; ++b) p.lengths[b] = {0, p.keys, p.keys, 0};
  p.scale = a.scale;
  p.as_written = true;
  p.nan_is_zero = a.nan_is_zero;
  if (c.has_input(kAddend)) p.mask = broadcast_mask(c.inputs[kAddend], p.keys);
  if (c.has_input(kCondition)) p.fill = {broadcast_mask(c.inputs[kCondition], p.keys), a.fills_where, a.fill};
  run_attention_core(p);
}

Cost cost(const NodeContext& c) {
  const auto q = seen(c, kQ), k = seen(c, kK), v = seen(c, kV);
  return attention_cost(c, q[0] * q[1], q[2], k[2], q[3] + v[3]);
}

}  // namespace

extern const OpDef op_fused_attention = {
    .domain = kPlimsollDomain,
    .name = "FusedAttention",
    .inputs = {3, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
