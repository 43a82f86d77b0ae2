#include "ops/fourier.h"

#include "ops/movement.h"

namespace plimsoll {

Dim fourier_scratch_bytes(Dim n, int threads) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(kernels::Complex));
  if (!n.is_constant()) return n * Dim(2 * kWidth * threads);
  if (n.value() < 1) return 0;
  const int64_t each = checked_add(n.value(), kernels::fft_scratch_elements(n.value()));
  return checked_mul(checked_mul(each, threads), kWidth);
}

void bind_fourier(BindContext& c, BoundFourier& bound, int64_t n, bool inverse) {
  if (n < 1) return;
  const auto elements = static_cast<size_t>(kernels::fft_table_elements(n));
  bound.per_thread = n + kernels::fft_scratch_elements(n);
  bound.plan = kernels::plan_fft(n, inverse, c.array<kernels::Complex>(elements).data());
}

std::optional<Dim> known_scalar(const NodeContext& c, size_t i) {
  if (!c.has_input(i)) return std::nullopt;
  const auto values = known_values(c.input(i));
  if (!values || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

void expect_scalar(const InferContext& c, size_t i, TypeSet types) {
  if (!c.has_input(i)) return;
  c.expect_type(i, types);
  const auto length = known_length(c, i);
  if (length && *length != 1) c.reject("input {}: expected one number, found {}", i, *length);
}

Dim expect_length(const NodeContext& c, Dim length) {
  if (length.is_constant() && (length.value() < 1 || length.value() > kMaxFourierLength))
    c.reject("a transform has a length from 1 to {}, not {}", kMaxFourierLength, length.value());
  return length;
}

}  // namespace plimsoll
