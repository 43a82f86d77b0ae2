// Normalization of rows of floats and doubles. Outputs may be the inputs.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

struct Moments {
  float mean;
  float variance;  // the mean of squared distances
};
Moments moments_f32(const float* x, int64_t count);
struct WideMoments {
  double mean, variance;
};
WideMoments moments_f64(const double* x, int64_t count);

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias for each row, with a scale and a bias per
// column. `bias` may be null; so may `mean` and `inverse_deviation`, which get a number per row.
void layer_norm_f32(const float* x, const float* scale, const float* bias, float* y, int64_t rows,
                    int64_t cols, float epsilon, float* mean, float* inverse_deviation);
void layer_norm_f64(const double* x, const double* scale, const double* bias, double* y, int64_t rows,
                    int64_t cols, float epsilon, float* mean, float* inverse_deviation);

// y = x * a + b
void affine_f32(const float* x, float* y, int64_t count, float a, float b);
void affine_f64(const double* x, double* y, int64_t count, double a, double b);

}  // namespace plimsoll::kernels
