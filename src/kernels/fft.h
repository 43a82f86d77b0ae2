// Discrete Fourier transforms of any length: mixed radix where the factors are small, Bluestein's convolution
// otherwise; O(n log n) in both cases. Nothing here allocates: tables and scratch are the caller's.
#pragma once

#include <complex>
#include <cstdint>

namespace plimsoll::kernels {

using Complex = std::complex<double>;

inline constexpr int kMaxFftFactors = 64;

struct FftPlan {
  int64_t n = 0;
  int64_t convolution = 0;  // Bluestein: length of the convolution, a power of two; 0 otherwise
  int factor_count = 0;     // of n, or of `convolution`
  uint8_t factors[kMaxFftFactors] = {};
  const Complex* roots = nullptr;     // exp(-2 pi i k / length) for the length of the factors
  const Complex* chirp = nullptr;     // Bluestein: exp(-pi i k^2 / n)
  const Complex* spectrum = nullptr;  // Bluestein: transform of the chirp's conjugate
};

// Numbers of complex elements. n is at least 1 and at most 2^40.
int64_t fft_table_elements(int64_t n);
int64_t fft_scratch_elements(int64_t n);

// Fills `table`; the plan points into it. With `inverse`, the exponent has the other sign (and no 1/n).
FftPlan plan_fft(int64_t n, bool inverse, Complex* table);

// In place; `scratch` has fft_scratch_elements(n).
void fft(const FftPlan& plan, Complex* x, Complex* scratch);

}  // namespace plimsoll::kernels
