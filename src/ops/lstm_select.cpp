#include <algorithm>

#include "kernels/gemm.h"
#include "ops/lstm.h"

namespace plimsoll {
namespace {

// Bytes of W or R packed; a bound while its dimensions are not known.
Dim packed_bytes(std::span<const Dim> dims) {
  const Dim gates = dims[1], k = dims[2];
  if (gates.is_constant() && k.is_constant())
    return dims[0] * Dim(static_cast<int64_t>(kernels::packed_b_bytes(k.value(), gates.value())));
  const Dim panel = kernels::packed_b_format();
  return dims[0] * ceil_div(k * ceil_div(gates, panel) * panel, Dim(16)) * Dim(64);
}

bool ask_for_packed(const SelectContext& c, size_t input) {
  if (!c.input(input).is_concrete()) return false;
  return c.pack(input, {"lstm_gates", {kernels::packed_b_format()}}, packed_bytes(c.dims(input)).value());
}

// What the two products may need for rows of A; known once the shapes are.
Dim rows_bytes(const SelectContext& c) {
  if (!c.is_concrete()) return 0;
  const auto x = c.dims(kLstmX);
  const int64_t input = x[2].value(), hidden = c.dims(kLstmR)[2].value();
  const int64_t batch = x[c.attrs<LstmAttrs>().batch_first ? 0 : 1].value();
  const size_t first =
      kernels::gemm_scratch_bytes({x[0].value() * x[1].value(), input, 4 * hidden}, input, 1, 1);
  const size_t second = kernels::gemm_scratch_bytes({batch, hidden, 4 * hidden}, hidden, 1, 1);
  return static_cast<int64_t>(std::max(first, second));
}

}  // namespace

const void* select_lstm(SelectContext& c) {
  auto* choice = c.make<LstmChoice>();
  if (!c.ranked(kLstmW) || !c.ranked(kLstmR)) return choice;
  if (c.type(kLstmW) == ElementType::kFloat) {
    choice->kernel = LstmKernel::kGemm;
    choice->w_packed = ask_for_packed(c, kLstmW);
    choice->r_packed = ask_for_packed(c, kLstmR);
    if (!choice->w_packed) choice->w_at = c.scratch(packed_bytes(c.dims(kLstmW)));
    if (!choice->r_packed) choice->r_at = c.scratch(packed_bytes(c.dims(kLstmR)));
  }
  if (!c.ranked(kLstmX)) return choice;
  const auto x = c.dims(kLstmX);
  const Dim rows = x[0] * x[1], batch = x[c.attrs<LstmAttrs>().batch_first ? 0 : 1];
  const Dim hidden = c.dims(kLstmR)[2];
  choice->gates_at = c.scratch(rows * hidden * Dim(4 * sizeof(float)));
  choice->h_at = c.scratch(batch * hidden * Dim(sizeof(float)));
  choice->cell_at = c.scratch(batch * hidden * Dim(sizeof(float)));
  choice->x_at = c.scratch(rows * x[2] * Dim(sizeof(float)));
  choice->rows_at = c.scratch(rows_bytes(c));
  return choice;
}

void pack_lstm_matrices(const TensorView& raw, std::byte* destination) {
  const int64_t gates = raw.dims[1], k = raw.dims[2];
  const auto bytes = static_cast<int64_t>(kernels::packed_b_bytes(k, gates));
  for (int64_t d = 0; d < raw.dims[0]; ++d)
    kernels::pack_b(k, gates, {raw.data + d * gates * k * 4, 1, k}, destination + d * bytes);
}

void pack_lstm(const PackContext& c) {
  pack_lstm_matrices(c.raw, c.destination);
}

}  // namespace plimsoll
