#include "kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace plimsoll::kernels {
namespace {

// What is left of n when small factors are taken out; fills in the factors.
int64_t factorize(int64_t n, FftPlan& plan) {
  plan.factor_count = 0;
  for (int64_t factor : {4, 2, 3, 5, 7, 11, 13}) {
    while (n % factor == 0) {
      plan.factors[plan.factor_count++] = static_cast<uint8_t>(factor);
      n /= factor;
    }
  }
  return n;
}

bool is_smooth(int64_t n) {
  FftPlan plan;
  return factorize(n, plan) == 1;
}

int64_t convolution_length(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
}

void fill_roots(int64_t n, double sign, Complex* roots) {
  const double step = sign * 2 * std::numbers::pi / static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k) {
    const double angle = step * static_cast<double>(k);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
}

// Without the checks for infinities that operator* makes.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// One pass of Stockham's method: `length` is still to be transformed, `stride` of such lie interleaved.
// y[q + stride * (r p + k)] = w^(p k) * sum_i x[q + stride * (p + m i)] w_r^(i k), m = length / r.
template <int r>
void pass(int64_t length, int64_t stride, const Complex* roots, int64_t n, const Complex* x, Complex* y) {
  const int64_t m = length / r;
  Complex small[r];  // roots of order r
  for (int i = 0; i < r; ++i) small[i] = roots[i * (n / r)];
  for (int64_t p = 0; p < m; ++p) {
    Complex twiddle[r];
    for (int k = 0; k < r; ++k) twiddle[k] = roots[p * k * stride];
    for (int64_t q = 0; q < stride; ++q) {
      Complex a[r];
      for (int i = 0; i < r; ++i) a[i] = x[q + stride * (p + m * i)];
      Complex* to = y + q + stride * r * p;
      if constexpr (r == 2) {
        to[0] = a[0] + a[1];
        to[stride] = times(a[0] - a[1], twiddle[1]);
      } else if constexpr (r == 4) {
        const Complex even = a[0] + a[2], odd = a[0] - a[2], sum = a[1] + a[3];
        const Complex turned = times(a[1] - a[3], small[1]);
        to[0] = even + sum;
        to[stride] = times(odd + turned, twiddle[1]);
        to[2 * stride] = times(even - sum, twiddle[2]);
        to[3 * stride] = times(odd - turned, twiddle[3]);
      } else {
        for (int k = 0; k < r; ++k) {
          Complex sum = a[0];
          for (int i = 1; i < r; ++i) sum += times(a[i], small[i * k % r]);
          to[k * stride] = times(sum, twiddle[k]);
        }
      }
    }
  }
}

void run_pass(int factor, int64_t length, int64_t stride, const Complex* roots, int64_t n, const Complex* x,
              Complex* y) {
  switch (factor) {
    case 2:
      return pass<2>(length, stride, roots, n, x, y);
    case 3:
      return pass<3>(length, stride, roots, n, x, y);
    case 4:
      return pass<4>(length, stride, roots, n, x, y);
    case 5:
      return pass<5>(length, stride, roots, n, x, y);
    case 7:
      return pass<7>(length, stride, roots, n, x, y);
    case 11:
      return pass<11>(length, stride, roots, n, x, y);
    default:
      return pass<13>(length, stride, roots, n, x, y);
  }
}

void mixed_radix(const FftPlan& plan, int64_t n, Complex* x, Complex* other) {
  Complex *from = x, *to = other;
  int64_t length = n, stride = 1;
  for (int i = 0; i < plan.factor_count; ++i) {
    const int factor = plan.factors[i];
    run_pass(factor, length, stride, plan.roots, n, from, to);
    length /= factor;
    stride *= factor;
    std::swap(from, to);
  }
  if (from != x) std::copy_n(from, n, x);
}

// exp(sign * pi i k^2 / n): k^2 is kept below 2 n, so that the angle is exact.
void fill_chirp(int64_t n, double sign, Complex* chirp) {
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double angle = sign * std::numbers::pi * static_cast<double>(square) / static_cast<double>(n);
    chirp[k] = {std::cos(angle), std::sin(angle)};
    square = (square + 2 * k + 1) % (2 * n);
  }
}

// The sum over j of x[j] chirp[j] conj(chirp[k - j]), times chirp[k]: a circular convolution.
void bluestein(const FftPlan& plan, Complex* x, Complex* scratch) {
  const int64_t n = plan.n, m = plan.convolution;
  Complex *work = scratch, *other = scratch + m;
  for (int64_t k = 0; k < n; ++k) work[k] = times(x[k], plan.chirp[k]);
  std::fill(work + n, work + m, Complex{});
  mixed_radix(plan, m, work, other);
  // The inverse is the conjugate of the transform of the conjugate, over m.
  for (int64_t k = 0; k < m; ++k) work[k] = std::conj(times(work[k], plan.spectrum[k]));
  mixed_radix(plan, m, work, other);
  const double scale = 1 / static_cast<double>(m);
  for (int64_t k = 0; k < n; ++k) x[k] = times(std::conj(work[k]) * scale, plan.chirp[k]);
}

}  // namespace

int64_t fft_table_elements(int64_t n) {
  return is_smooth(n) ? n : n + 3 * convolution_length(n);
}

int64_t fft_scratch_elements(int64_t n) {
  return is_smooth(n) ? n : 2 * convolution_length(n);
}

FftPlan plan_fft(int64_t n, bool inverse, Complex* table) {
  FftPlan plan;
  plan.n = n;
  const double sign = inverse ? 1 : -1;
  plan.roots = table;
  if (factorize(n, plan) == 1) {
    fill_roots(n, sign, table);
    return plan;
  }
  const int64_t m = plan.convolution = convolution_length(n);
  factorize(m, plan);
  fill_roots(m, -1, table);
  Complex *chirp = table + m, *spectrum = chirp + n;
  fill_chirp(n, sign, chirp);
  std::fill_n(spectrum, m, Complex{});
  for (int64_t k = 0; k < n; ++k) spectrum[k] = spectrum[(m - k) % m] = std::conj(chirp[k]);
  mixed_radix(plan, m, spectrum, spectrum + m);
  plan.chirp = chirp, plan.spectrum = spectrum;
  return plan;
}

void fft(const FftPlan& plan, Complex* x, Complex* scratch) {
  if (plan.convolution != 0) return bluestein(plan, x, scratch);
  mixed_radix(plan, plan.n, x, scratch);
}

}  // namespace plimsoll::kernels
