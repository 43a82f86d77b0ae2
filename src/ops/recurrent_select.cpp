#include <algorithm>

#include "kernels/gemm.h"
#include "ops/recurrent.h"

namespace plimsoll {
namespace {

// R's gates may be two matrices; W's are one.
int64_t joint_gates(const RecurrentKind& kind, size_t input) {
  return input == kRecurrentR ? kind.joint_gates : kind.gates;
}

// Calls f(TypeTag<Number>{}) with what a type computes in.
template <typename F>
auto with_number(ElementType type, F&& f) {
  return type == ElementType::kDouble ? f(TypeTag<double>{}) : f(TypeTag<float>{});
}

// Bytes of W or R packed; a bound while its dimensions are not known.
template <typename Number>
Dim packed_bytes_of(const NodeContext& c, size_t input) {
  const RecurrentKind& kind = *c.attrs<RecurrentAttrs>().kind;
  const auto dims = c.dims(input);
  const Dim gates = dims[1], k = dims[2], hidden = c.dims(kRecurrentR)[2];
  if (hidden.is_constant() && k.is_constant())
    return dims[0] * Dim(recurrent_packed_bytes<Number>(kind.gates, joint_gates(kind, input), hidden.value(),
                                                        k.value()));
  const Dim panel = kernels::packed_b_format<Number>();
  const Dim panels = ceil_div(gates, panel) + Dim(1);  // two matrices may end in incomplete ones
  return dims[0] * ceil_div(k * panels * panel * Dim(sizeof(Number)), Dim(64)) * Dim(64);
}
Dim packed_bytes(const NodeContext& c, size_t input) {
  return with_number(c.type(input),
                     [&](auto tag) { return packed_bytes_of<typename decltype(tag)::type>(c, input); });
}

bool ask_for_packed(const SelectContext& c, size_t input) {
  if (!c.input(input).is_concrete() || !c.input(kRecurrentR).is_concrete()) return false;
  const RecurrentKind& kind = *c.attrs<RecurrentAttrs>().kind;
  const int panel = with_number(
      c.type(input), [](auto tag) { return kernels::packed_b_format<typename decltype(tag)::type>(); });
  const PackFormat format{"recurrent_gates", {panel, kind.gates, joint_gates(kind, input)}};
  return c.pack(input, format, packed_bytes(c, input).value());
}

// So many rows of X are multiplied at once, in whole steps: enough for the product, few enough to stay in a
// cache, and in little memory however long the sequence.
constexpr int64_t kRowsAtOnce = 168;

// Two directions run beside each other where the threads would otherwise meet twice in every step, unless
// there are so many threads and so much in a step that more than two gain by that.
int lanes_of(const SelectContext& c) {
  constexpr int kMany = 4;
  constexpr int64_t kMuch = 1 << 21;
  const auto& a = c.attrs<RecurrentAttrs>();
  if (a.directions < 2 || c.threads < 2) return 1;
  if (c.threads < kMany || !c.is_concrete()) return 2;
  const int64_t batch = c.dims(kRecurrentX)[a.batch_first ? 0 : 1].value();
  const int64_t hidden = c.dims(kRecurrentR)[2].value();
  return batch * a.kind->gates * hidden * hidden < kMuch ? 2 : 1;
}

// Parts of the batch run beside each other through all steps of a piece, where every thread can keep R in its
// cache; else threads share out its columns, and meet in every step.
int64_t batch_parts_of(const SelectContext& c, int lanes) {
  constexpr int64_t kSmallBytes = 512 << 10;
  if (lanes > 1 || c.threads < 2 || !c.is_concrete()) return 1;
  const auto& a = c.attrs<RecurrentAttrs>();
  const int64_t batch = c.dims(kRecurrentX)[a.batch_first ? 0 : 1].value();
  const int64_t hidden = c.dims(kRecurrentR)[2].value();
  const int64_t bytes = a.kind->gates * hidden * hidden * int64_t{sizeof(float)};
  return bytes <= kSmallBytes ? std::clamp<int64_t>(batch, 1, c.threads) : 1;
}

// Of one part's product with R, the larger or the smaller.
template <typename Number>
int64_t part_rows_bytes(int64_t batch, int64_t parts, int64_t hidden, int64_t columns) {
  const auto need = [&](int64_t m) {
    return kernels::gemm_scratch_bytes<Number>({m, hidden, columns}, hidden, 1, 1);
  };
  return ceil_div(static_cast<int64_t>(std::max(need(batch / parts), need(ceil_div(batch, parts)))), 64) * 64;
}

// What the products may need for rows of A; known once the shapes are.
Dim rows_bytes(const SelectContext& c, const RecurrentChoice& choice) {
  if (!c.is_concrete()) return 0;
  const auto& a = c.attrs<RecurrentAttrs>();
  const auto x = c.dims(kRecurrentX);
  const int64_t input = x[2].value(), hidden = c.dims(kRecurrentR)[2].value();
  const int64_t batch = x[a.batch_first ? 0 : 1].value(), steps = x[a.batch_first ? 1 : 0].value();
  const int64_t columns = a.kind->gates * hidden;
  const int threads = choice.lanes > 1 ? 1 : c.threads;
  return with_number(c.type(kRecurrentX), [&](auto tag) {
    using Number = typename decltype(tag)::type;
    const auto need = [&](int64_t m, int64_t k) {
      return static_cast<int64_t>(kernels::gemm_scratch_bytes<Number>({m, k, columns}, k, 1, threads));
    };
    const int64_t first = std::min(steps, choice.steps_at_once), last = steps % choice.steps_at_once;
    const int64_t of_parts =
        choice.batch_parts * part_rows_bytes<Number>(batch, choice.batch_parts, hidden, columns);
    return Dim(
        std::max({need(first * batch, input), need(last * batch, input), need(batch, hidden), of_parts}));
  });
}

RecurrentChoice::Part place(SelectContext& c, int lanes, Dim bytes) {
  const Dim whole = ceil_div(bytes, Dim(64)) * Dim(64);
  return {c.scratch(whole * Dim(lanes)), whole.is_constant() ? whole.value() : 0};
}

void place_weights(SelectContext& c, RecurrentChoice& choice) {
  const ElementType type = c.type(kRecurrentW);
  const bool computes_in_it = type == ElementType::kFloat || type == ElementType::kDouble;
  choice.w_packed = computes_in_it && ask_for_packed(c, kRecurrentW);
  choice.r_packed = computes_in_it && ask_for_packed(c, kRecurrentR);
  if (!choice.w_packed) choice.w_at = c.scratch(packed_bytes(c, kRecurrentW));
  if (!choice.r_packed) choice.r_at = c.scratch(packed_bytes(c, kRecurrentR));
  if (computes_in_it) return;
  const auto w = c.dims(kRecurrentW), r = c.dims(kRecurrentR);
  choice.widened_at = c.scratch(max(w[1] * w[2], r[1] * r[2]) * Dim(sizeof(float)));
}

}  // namespace

bool reads_x_in_place(ElementType type, const RecurrentAttrs& a) {
  return (type == ElementType::kFloat || type == ElementType::kDouble) && !a.batch_first;
}

const void* select_recurrent(SelectContext& c) {
  auto* choice = c.make<RecurrentChoice>();
  if (!c.ranked(kRecurrentW) || !c.ranked(kRecurrentR)) return choice;
  place_weights(c, *choice);
  if (!c.ranked(kRecurrentX)) return choice;
  const auto& a = c.attrs<RecurrentAttrs>();
  const auto x = c.dims(kRecurrentX);
  const Dim number = c.type(kRecurrentX) == ElementType::kDouble ? sizeof(double) : sizeof(float);
  const Dim rows = x[0] * x[1], batch = x[a.batch_first ? 0 : 1], hidden = c.dims(kRecurrentR)[2];
  if (!reads_x_in_place(c.type(kRecurrentX), a)) choice->x_at = c.scratch(rows * x[2] * number);
  const int lanes = choice->lanes = lanes_of(c);
  choice->batch_parts = batch_parts_of(c, lanes);
  const int64_t at_once = kRowsAtOnce / lanes;
  if (batch.is_constant())
    choice->steps_at_once = std::max<int64_t>(1, at_once / std::max<int64_t>(1, batch.value()));
  const Dim gate_rows = min(rows, max(batch, Dim(at_once)));
  choice->gates = place(c, lanes, gate_rows * hidden * Dim(a.kind->gates) * number);
  const int64_t states = a.kind->has_cell || a.kind->joint_gates < a.kind->gates ? 2 : 1;
  choice->states = place(c, lanes, batch * hidden * Dim(states) * number);
  choice->biases = place(c, lanes, hidden * Dim(a.kind->gates + 4) * number);
  choice->rows = place(c, lanes, rows_bytes(c, *choice));
  return choice;
}

template <typename Number>
int64_t recurrent_packed_bytes(int64_t gates, int64_t joint, int64_t hidden, int64_t k) {
  size_t bytes = kernels::packed_b_bytes<Number>(k, joint * hidden);
  if (joint < gates) bytes += kernels::packed_b_bytes<Number>(k, (gates - joint) * hidden);
  return static_cast<int64_t>(bytes);
}
template int64_t recurrent_packed_bytes<float>(int64_t, int64_t, int64_t, int64_t);
template int64_t recurrent_packed_bytes<double>(int64_t, int64_t, int64_t, int64_t);

// W and R are [gates * hidden, k]: the columns of what GEMM multiplies by.
template <typename Number>
void pack_recurrent_matrix(const void* raw, int64_t gates, int64_t joint, int64_t hidden, int64_t k,
                           std::byte* destination) {
  const auto* from = static_cast<const std::byte*>(raw);
  kernels::pack_b<Number>(k, joint * hidden, {from, 1, k}, destination);
  if (joint == gates) return;
  from += joint * hidden * k * static_cast<int64_t>(sizeof(Number));
  kernels::pack_b<Number>(k, (gates - joint) * hidden, {from, 1, k},
                          destination + kernels::packed_b_bytes<Number>(k, joint * hidden));
}
template void pack_recurrent_matrix<float>(const void*, int64_t, int64_t, int64_t, int64_t, std::byte*);
template void pack_recurrent_matrix<double>(const void*, int64_t, int64_t, int64_t, int64_t, std::byte*);

void pack_recurrent(const PackContext& c) {
  const RecurrentKind& kind = *c.attrs<RecurrentAttrs>().kind;
  const int64_t k = c.raw.dims[2], hidden = c.raw.dims[1] / kind.gates;
  const int64_t joint = joint_gates(kind, c.input_to_pack);
  with_number(c.raw.type, [&](auto tag) {
    using Number = typename decltype(tag)::type;
    const int64_t bytes = recurrent_packed_bytes<Number>(kind.gates, joint, hidden, k);
    for (int64_t d = 0; d < c.raw.dims[0]; ++d)
      pack_recurrent_matrix<Number>(c.raw.data + d * c.raw.dims[1] * k * static_cast<int64_t>(sizeof(Number)),
                                    kind.gates, joint, hidden, k, c.destination + d * bytes);
  });
}

}  // namespace plimsoll
