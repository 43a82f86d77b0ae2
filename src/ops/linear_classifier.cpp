#include <algorithm>

#include "kernels/inner_products.h"
#include "kernels/parallel.h"
#include "ops/feature_rows.h"
#include "ops/score_transform.h"

namespace plimsoll {
namespace {

struct ClassifierAttrs {
  std::span<const float> coefficients;  // [scores, features]
  std::span<const float> intercepts;
  ClassLabels labels;
  int64_t scores = 1;   // one for each class, or one that tells two classes apart
  int64_t columns = 1;  // of the output
  PostTransform transform = PostTransform::kNone;
};

// Models without labels name two classes 0 and 1, as ONNX Runtime has it.
constexpr int64_t kNoLabels[] = {0, 1};

void check_labels(AttrContext& c, const ClassifierAttrs& a) {
  const auto labels = static_cast<int64_t>(a.labels.size());
  if (a.scores == 1 ? labels != 0 && labels != 2 : labels != a.scores)
    c.reject("expected {} labels for {} scores, found {}", a.scores == 1 ? 2 : a.scores, a.scores, labels);
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<ClassifierAttrs>();
  a->coefficients = c.reals("coefficients");
  a->intercepts = c.reals("intercepts");
  a->labels = read_labels(c, "classlabels_strings", "classlabels_ints");
  a->transform = read_post_transform(c);
  c.integer("multi_class", 0);
  a->scores = static_cast<int64_t>(a->intercepts.empty() ? a->labels.size() : a->intercepts.size());
  if (a->scores < 1) c.reject("expected the attribute 'intercepts' or labels of classes, found neither");
  check_labels(c, *a);
  const auto size = static_cast<int64_t>(a->coefficients.size());
  if (size == 0 || size % a->scores != 0)
    c.reject("attribute 'coefficients': expected some for each of {} scores, found {}", a->scores, size);
  a->columns = a->scores == 1 && a->labels.size() == 2 ? 2 : a->scores;
  if (a->labels.size() == 0) a->labels.numbers = kNoLabels;
  return a;
}

int64_t features(const ClassifierAttrs& a) {
  return static_cast<int64_t>(a.coefficients.size()) / a.scores;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  expect_feature_rows(c, features(a));
  const Dim rows = c.ranked(0) ? row_count(c) : c.unknown("rows");
  c.set_output(0, a.labels.type(), std::vector<Dim>{rows});
  c.set_output(1, ElementType::kFloat, std::vector<Dim>{rows, Dim(a.columns)});
}

// Floats of the input, and scores where nobody reads them.
const void* select(SelectContext& c) {
  float_features_scratch(c);
  if (!c.has_output(1) && c.ranked(0)) c.scratch(row_count(c) * Dim(c.attrs<ClassifierAttrs>().columns * 4));
  return nullptr;
}

int64_t scores_offset(const RunContext& c) {
  const TensorView& x = c.inputs[0];
  const int64_t floats = x.type == ElementType::kFloat ? 0 : x.elements() * 4;
  return round_up(floats, SelectContext::kScratchAlignment);
}

// Scores of one row; returns the number of its label.
size_t classify(const ClassifierAttrs& a, const float* x, float* scores) {
  kernels::inner_products_f32(x, 1, a.coefficients.data(), a.scores, features(a),
                              a.intercepts.empty() ? nullptr : a.intercepts.data(), scores);
  if (a.scores > 1) {
    const auto best = static_cast<size_t>(std::max_element(scores, scores + a.scores) - scores);
    transform_scores(a.transform, {scores, static_cast<size_t>(a.scores)});
    return best;
  }
  const float score = scores[0];
  if (a.columns == 2)
    write_both_classes(a.transform, score, true, scores);
  else
    scores[0] = transform_single(a.transform, score);
  return score > 0 ? 1 : 0;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  const int64_t rows = feature_rows(c.inputs[0]).rows, width = features(a);
  const float* x = float_features(c, 0);
  float* scores = c.has_output(1) ? c.outputs[1].as<float>() : c.scratch_as<float>(scores_offset(c));
  kernels::parallel_for(rows * width * a.scores > 65536 ? c.threads : 1, rows, [&](int64_t row) {
    const size_t label = classify(a, x + row * width, scores + row * a.columns);
    if (c.has_output(0)) a.labels.write(c.outputs[0], row, label);
  });
}

}  // namespace

extern const OpDef op_linear_classifier = {
    .domain = kMlDomain,
    .name = "LinearClassifier",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
