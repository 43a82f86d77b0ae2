// One step of an optimizer over a range of a parameter: weights and moments change in place, in one pass.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

template <typename T>
struct UpdateRange {
  int64_t count = 0;
  const T* gradient = nullptr;
  T* weight = nullptr;
  T* state[3] = {};  // what each update says
};

// What every update does to a gradient first: scaled, held within +-clip (0: not at all), plus decay times
// the weight.
struct GradientChange {
  double scale = 1, clip = 0, decay = 0;
};

// States: the momentum's buffer, if momentum is not 0.
struct SgdUpdate {
  GradientChange change;
  double rate = 0, momentum = 0, dampening = 0;
  bool nesterov = false;
  bool first = false;  // the buffer takes the gradient as it is
};
// States: first and second moment. w = w * keep - rate * m / (sqrt(v) * root_scale + epsilon), then
// w = w * keep_after.
struct AdamUpdate {
  GradientChange change;
  double rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
  double root_scale = 1, keep = 1, keep_after = 1;
};
// States: the sum of squares.
struct AdagradUpdate {
  GradientChange change;
  double rate = 0, epsilon = 0;
};
// States: mean of squares; the mean, if centered; the momentum's buffer, if momentum is not 0.
struct RmsPropUpdate {
  GradientChange change;
  double rate = 0, alpha = 0, epsilon = 0, momentum = 0;
  bool centered = false;
};
// States: first and second moment. The direction is m * mean_scale / (sqrt(v * square_scale) + epsilon) +
// decay * w.
struct LambUpdate {
  GradientChange change;
  double rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, decay = 0;
  double mean_scale = 1, square_scale = 1;
};
// Squares of the weights and of the direction, summed.
struct LambNorms {
  double weight = 0, direction = 0;
};

template <typename T>
void update(const SgdUpdate& how, const UpdateRange<T>& range);
template <typename T>
void update(const AdamUpdate& how, const UpdateRange<T>& range);
template <typename T>
void update(const AdagradUpdate& how, const UpdateRange<T>& range);
template <typename T>
void update(const RmsPropUpdate& how, const UpdateRange<T>& range);
// The moments, then, with the rate times the ratio of the norms over the whole parameter, the weights.
template <typename T>
LambNorms update_moments(const LambUpdate& how, const UpdateRange<T>& range);
template <typename T>
void update_weights(const LambUpdate& how, const UpdateRange<T>& range);

// sum += x.
template <typename T>
void add_to(int64_t count, const T* x, T* sum);
// The sum of squares, in double.
template <typename T>
double sum_of_squares(int64_t count, const T* x);

}  // namespace plimsoll::kernels
