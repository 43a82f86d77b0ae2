// Scores and labels of the classifiers and regressors of ai.onnx.ml.
#pragma once

#include <span>

#include "graph/op_def.h"

namespace plimsoll {

enum class PostTransform : uint8_t {
  kNone,
  kSoftmax,
  kLogistic,
  kSoftmaxZero,
  kProbit
};  // as TreeEnsemble counts

PostTransform read_post_transform(AttrContext& c);  // attribute 'post_transform', a name
float logistic(float x);
float probit(float x);
// In place, on two scores or more. Softmax and logistic as their names say; SOFTMAX_ZERO is a softmax that
// leaves zeros alone; PROBIT is the inverse of the normal distribution's function.
void transform_scores(PostTransform transform, std::span<float> scores);
void transform_scores(PostTransform transform, std::span<double> scores);
// A single score: only PROBIT applies, as in ONNX Runtime; the text names no other meaning.
float transform_single(PostTransform transform, float score);
// One score of the positive class becomes those of both classes, as ONNX Runtime does it: LOGISTIC gives the
// logistic of -s and s; others leave [1 - s, s] if it is a probability, else [-s, s]; PROBIT the probit of s
// and 0.
void write_both_classes(PostTransform transform, float score, bool probability, float* scores);

// Names of classes: texts or numbers.
struct ClassLabels {
  std::span<const std::string_view> texts;
  std::span<const int64_t> numbers;
  bool strings() const { return !texts.empty(); }
  size_t size() const { return strings() ? texts.size() : numbers.size(); }
  ElementType type() const { return strings() ? ElementType::kString : ElementType::kInt64; }
  // Label `index` to element i of a tensor.
  void write(const TensorView& to, int64_t i, size_t index) const {
    if (strings())
      to.as<StringRef>()[i] = {texts[index].data(), texts[index].size()};
    else
      to.as<int64_t>()[i] = numbers[index];
  }
};
ClassLabels read_labels(AttrContext& c, std::string_view texts, std::string_view numbers);

}  // namespace plimsoll
