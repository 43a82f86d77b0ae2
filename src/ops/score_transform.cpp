#include "ops/score_transform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace plimsoll {

PostTransform read_post_transform(AttrContext& c) {
  const std::string_view name = c.text("post_transform", "NONE");
  constexpr std::pair<std::string_view, PostTransform> kNames[] = {
      {"NONE", PostTransform::kNone},
      {"SOFTMAX", PostTransform::kSoftmax},
      {"LOGISTIC", PostTransform::kLogistic},
      {"SOFTMAX_ZERO", PostTransform::kSoftmaxZero},
      {"PROBIT", PostTransform::kProbit}};
  for (const auto& [known, transform] : kNames) {
    if (name == known) return transform;
  }
  c.reject("attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, found '{}'",
           name);
}

float logistic(float x) {
  const float of_magnitude = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - of_magnitude : of_magnitude;
}

// Winitzki's formula for the inverse of erf, which ONNX Runtime uses: good to three digits.
float probit(float x) {
  const float y = 2 * x - 1;
  const float log = std::log((1 - y) * (1 + y));
  const float a = 0.147f;
  const float v = 2 / (std::numbers::pi_v<float> * a) + 0.5f * log;
  const float root = std::sqrt(-v + std::sqrt(v * v - log / a));
  return std::numbers::sqrt2_v<float> * (y < 0 ? -root : root);
}

namespace {

template <typename T>
void softmax(std::span<T> scores, bool skip_zeros) {
  T largest = -std::numeric_limits<T>::max();
  for (const T score : scores) largest = std::max(largest, score);
  T sum = 0;
  for (T& score : scores) {
    if (skip_zeros && !(std::abs(score) > T(1e-7f))) {
      score *= std::exp(-largest);
      continue;
    }
    score = std::exp(score - largest);
    sum += score;
  }
  for (T& score : scores) score /= sum;
}

template <typename T>
void transform_all(PostTransform transform, std::span<T> scores) {
  switch (transform) {
    case PostTransform::kNone:
      return;
    case PostTransform::kSoftmax:
      return softmax(scores, false);
    case PostTransform::kSoftmaxZero:
      return softmax(scores, true);
    case PostTransform::kLogistic:
      for (T& score : scores) score = logistic(static_cast<float>(score));
      return;
    case PostTransform::kProbit:
      for (T& score : scores) score = probit(static_cast<float>(score));
  }
}

}  // namespace

void transform_scores(PostTransform transform, std::span<float> scores) {
  transform_all(transform, scores);
}
void transform_scores(PostTransform transform, std::span<double> scores) {
  transform_all(transform, scores);
}

float transform_single(PostTransform transform, float score) {
  return transform == PostTransform::kProbit ? probit(score) : score;
}

void write_both_classes(PostTransform transform, float score, bool probability, float* scores) {
  scores[0] = probability ? 1 - score : -score;
  scores[1] = score;
  if (transform == PostTransform::kLogistic) {
    scores[0] = logistic(-score);
    scores[1] = logistic(score);
  } else if (transform == PostTransform::kProbit) {
    scores[0] = probit(score);
    scores[1] = 0;
  }
}

ClassLabels read_labels(AttrContext& c, std::string_view texts, std::string_view numbers) {
  const ClassLabels labels{c.texts(texts), c.integers(numbers)};
  if (!labels.texts.empty() && !labels.numbers.empty())
    c.reject("expected one of the attributes '{}' and '{}', found both", texts, numbers);
  return labels;
}

}  // namespace plimsoll
