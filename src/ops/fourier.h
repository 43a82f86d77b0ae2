// What DFT and STFT share: the plan of a transform of one length, and where its memory is.
#pragma once

#include <optional>

#include "graph/op_def.h"
#include "kernels/fft.h"

namespace plimsoll {

inline constexpr int64_t kMaxFourierLength = int64_t{1} << 32;

struct BoundFourier {
  kernels::FftPlan plan;
  int64_t per_thread = 0;  // complex numbers of scratch: a signal, then what the transform needs
};

// Scratch of all threads for transforms of length n.
Dim fourier_scratch_bytes(Dim n, int threads);
// n is 0 where there is nothing to transform.
void bind_fourier(BindContext& c, BoundFourier& bound, int64_t n, bool inverse);

// The integer that input i holds, as far as it is known; a scalar, or a list of one.
std::optional<Dim> known_scalar(const NodeContext& c, size_t i);
void expect_scalar(const InferContext& c, size_t i, TypeSet types);
// A length of a transform: at least 1.
Dim expect_length(const NodeContext& c, Dim length);

}  // namespace plimsoll
