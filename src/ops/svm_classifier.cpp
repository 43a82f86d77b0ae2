#include <algorithm>
#include <cmath>

#include "kernels/inner_products.h"
#include "kernels/parallel.h"
#include "ops/feature_rows.h"
#include "ops/score_transform.h"
#include "ops/svm_kernel.h"

namespace plimsoll {
namespace {

// With support vectors there is a classifier for every pair of classes, in the order (0, 1), (0, 2), ..., (1,
// 2), ...; without, a linear function for every class. What comes out is what ONNX Runtime gives.
struct ClassifierAttrs {
  SvmKernel kernel;
  ClassLabels labels;
  std::span<const float> coefficients;  // [classes - 1, vectors], or [classes, features]
  std::span<const float> vectors;       // [count, features]
  std::span<const int64_t> vectors_per_class;
  std::span<const float> rho, prob_a, prob_b;  // by pair
  int64_t classes = 0, pairs = 0, count = 0, features = 0;
  PostTransform transform = PostTransform::kNone;
  bool pairwise() const { return count > 0; }
  bool probabilities() const { return pairwise() && !prob_a.empty(); }
  int64_t columns() const {
    if (!pairwise() || probabilities()) return classes;
    return classes == 2 ? 2 : pairs;
  }
};

void check_pairwise(AttrContext& c, const ClassifierAttrs& a) {
  const auto expect = [&](const char* name, size_t found, int64_t expected) {
    if (static_cast<int64_t>(found) != expected)
      c.reject("attribute '{}': expected {} numbers, found {}", name, expected, found);
  };
  if (a.classes < 2) c.reject("expected labels of two classes or more, found {}", a.classes);
  expect("vectors_per_class", a.vectors_per_class.size(), a.classes);
  expect("coefficients", a.coefficients.size(), checked_mul(a.classes - 1, a.count));
  expect("rho", a.rho.size(), a.pairs);
  if (a.vectors.empty() || static_cast<int64_t>(a.vectors.size()) % a.count != 0)
    c.reject("attribute 'support_vectors': expected {} vectors, found {} numbers", a.count, a.vectors.size());
  if (a.prob_a.empty() && a.prob_b.empty()) return;
  expect("prob_a", a.prob_a.size(), a.pairs);
  expect("prob_b", a.prob_b.size(), a.pairs);
}

void read_lists(AttrContext& c, ClassifierAttrs& a) {
  a.kernel = read_svm_kernel(c);
  a.labels = read_labels(c, "classlabels_strings", "classlabels_ints");
  a.transform = read_post_transform(c);
  a.coefficients = c.reals("coefficients");
  a.vectors = c.reals("support_vectors");
  a.vectors_per_class = c.integers("vectors_per_class");
  a.rho = c.reals("rho");
  a.prob_a = c.reals("prob_a");
  a.prob_b = c.reals("prob_b");
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<ClassifierAttrs>();
  read_lists(c, *a);
  a->classes = static_cast<int64_t>(a->labels.size());
  if (a->classes == 0 || a->classes > 65535)
    c.reject("expected labels of 1 to 65535 classes, found {}", a->classes);
  a->pairs = a->classes * (a->classes - 1) / 2;
  for (const int64_t count : a->vectors_per_class) {
    if (count < 0) c.reject("attribute 'vectors_per_class': {} is not a number of vectors", count);
    a->count = checked_add(a->count, count);
  }
  if (a->pairwise()) {
    check_pairwise(c, *a);
    a->features = static_cast<int64_t>(a->vectors.size()) / a->count;
    return a;
  }
  if (a->rho.empty()) c.reject("attribute 'rho': expected one number, found none");
  if (a->coefficients.empty() || static_cast<int64_t>(a->coefficients.size()) % a->classes != 0)
    c.reject("attribute 'coefficients': expected some for each of {} classes, found {}", a->classes,
             a->coefficients.size());
  a->features = static_cast<int64_t>(a->coefficients.size()) / a->classes;
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  expect_feature_rows(c, a.features);
  const Dim rows = c.ranked(0) ? row_count(c) : c.unknown("rows");
  c.set_output(0, a.labels.type(), std::vector<Dim>{rows});
  c.set_output(1, ElementType::kFloat, std::vector<Dim>{rows, Dim(a.columns())});
}

// Every task has its own kernel values, scores of pairs, votes, and what turns them into probabilities.
struct ClassifierChoice {
  int64_t floats = 0, workspace = 0, task_floats = 0;
  int tasks = 1;
};

const void* select(SelectContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  auto* choice = c.make<ClassifierChoice>();
  choice->tasks = c.threads;
  choice->floats = float_features_scratch(c);
  choice->task_floats = a.count + a.pairs + a.classes + a.columns();
  if (a.probabilities()) choice->task_floats += 2 * (2 * a.classes * a.classes + 2 * a.classes) + 2;
  choice->workspace = c.scratch(Dim(checked_mul(choice->task_floats * 4, choice->tasks)));
  return choice;
}

struct Workspace {
  float *values, *scores, *votes, *columns;
  double* probability;
};
Workspace workspace_of(const ClassifierAttrs& a, float* memory) {
  Workspace w{};
  w.values = memory;
  w.scores = w.values + a.count;
  w.votes = w.scores + a.pairs;
  w.columns = w.votes + a.classes;
  float* rest = w.columns + a.columns();
  if (reinterpret_cast<uintptr_t>(rest) % alignof(double) != 0) ++rest;
  w.probability = reinterpret_cast<double*>(rest);
  return w;
}

// The score of every pair of classes; the winners get votes.
void score_pairs(const ClassifierAttrs& a, const Workspace& w) {
  std::fill_n(w.votes, a.classes, 0.f);
  const auto weighted = [&](int64_t row, int64_t start, int64_t count) {
    double sum = 0;
    const float* coefficient = a.coefficients.data() + row * a.count + start;
    for (int64_t m = 0; m < count; ++m) sum += static_cast<double>(coefficient[m]) * w.values[start + m];
    return sum;
  };
  int64_t pair = 0, start_i = 0;
  for (int64_t i = 0; i < a.classes; ++i) {
    const int64_t count_i = a.vectors_per_class[static_cast<size_t>(i)];
    int64_t start_j = start_i + count_i;
    for (int64_t j = i + 1; j < a.classes; ++j, ++pair) {
      const int64_t count_j = a.vectors_per_class[static_cast<size_t>(j)];
      const double score = weighted(j - 1, start_i, count_i) + weighted(i, start_j, count_j) +
                           static_cast<double>(a.rho[static_cast<size_t>(pair)]);
      w.scores[pair] = static_cast<float>(score);
      w.votes[score > 0 ? i : j] += 1;
      start_j += count_j;
    }
    start_i += count_i;
  }
}

// Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", section 4:
// the iteration that libsvm makes, with its constants. r[i, j] is the probability of i against j.
void couple(int64_t k, const double* r, double* q, double* qp, double* p) {
  for (int64_t t = 0; t < k; ++t) {
    p[t] = 1.0 / static_cast<double>(k);
    q[t * k + t] = 0;
    for (int64_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = j < t ? q[j * k + t] : -r[j * k + t] * r[t * k + j];
    }
  }
  const double tolerance = 0.005 / static_cast<double>(k);
  for (int iteration = 0; iteration < 100; ++iteration) {
    double pqp = 0, worst = 0;
    for (int64_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (int64_t t = 0; t < k; ++t) worst = std::max(worst, std::abs(qp[t] - pqp));
    if (worst < tolerance) return;
    for (int64_t t = 0; t < k; ++t) {
      const double change = (-qp[t] + pqp) / q[t * k + t];
      p[t] += change;
      pqp = (pqp + change * (change * q[t * k + t] + 2 * qp[t])) / (1 + change) / (1 + change);
      for (int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + change * q[t * k + j]) / (1 + change);
        p[j] /= 1 + change;
      }
    }
  }
}

void write_probabilities(const ClassifierAttrs& a, const Workspace& w) {
  const int64_t k = a.classes;
  double *r = w.probability, *q = r + k * k, *qp = q + k * k, *p = qp + k;
  int64_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      const auto at = static_cast<size_t>(pair);
      const double score = static_cast<double>(w.scores[pair]) * a.prob_a[at] + a.prob_b[at];
      const double of_i = std::clamp(1 / (1 + std::exp(score)), 1e-7, 1 - 1e-7);
      r[i * k + j] = of_i;
      r[j * k + i] = 1 - of_i;
    }
  }
  couple(k, r, q, qp, p);
  for (int64_t i = 0; i < k; ++i) w.columns[i] = static_cast<float>(p[i]);
}

size_t classify_pairwise(const ClassifierAttrs& a, const float* x, const Workspace& w) {
  svm_kernel_values(a.kernel, x, a.vectors.data(), a.count, a.features, w.values);
  score_pairs(a, w);
  const auto label = static_cast<size_t>(std::max_element(w.votes, w.votes + a.classes) - w.votes);
  if (a.probabilities()) {
    write_probabilities(a, w);
    transform_scores(a.transform, {w.columns, static_cast<size_t>(a.classes)});
  } else if (a.classes == 2) {
    write_both_classes(a.transform, w.scores[0], a.transform != PostTransform::kNone, w.columns);
  } else {
    std::copy_n(w.scores, a.pairs, w.columns);
    transform_scores(a.transform, {w.columns, static_cast<size_t>(a.pairs)});
  }
  return label;
}

// A score for every class. Of two classes the second is taken as soon as the larger score is on its side:
// above 0, or at least 0.5 where no coefficient is negative.
size_t classify_linear(const ClassifierAttrs& a, const float* x, const Workspace& w) {
  kernels::inner_products_f32(x, 1, a.coefficients.data(), a.classes, a.features, nullptr, w.columns);
  for (int64_t i = 0; i < a.classes; ++i) w.columns[i] += a.rho[0];
  const float* best = std::max_element(w.columns, w.columns + a.classes);
  auto label = static_cast<size_t>(best - w.columns);
  if (a.classes == 2) {
    const bool positive =
        std::all_of(a.coefficients.begin(), a.coefficients.end(), [](float v) { return v >= 0; });
    if (positive ? *best >= 0.5f : *best > 0) label = 1;
  }
  if (a.classes > 1)
    transform_scores(a.transform, {w.columns, static_cast<size_t>(a.classes)});
  else
    w.columns[0] = transform_single(a.transform, w.columns[0]);
  return label;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<ClassifierAttrs>();
  const auto& choice = c.choice<ClassifierChoice>();
  const int64_t rows = feature_rows(c.inputs[0]).rows;
  const float* x = float_features(c, choice.floats);
  kernels::parallel_for(choice.tasks, choice.tasks, [&](int64_t task) {
    const Workspace w = workspace_of(a, c.scratch_as<float>(choice.workspace) + task * choice.task_floats);
    for (int64_t row = rows * task / choice.tasks; row < rows * (task + 1) / choice.tasks; ++row) {
      const float* features = x + row * a.features;
      const size_t label = a.pairwise() ? classify_pairwise(a, features, w) : classify_linear(a, features, w);
      if (c.has_output(0)) a.labels.write(c.outputs[0], row, label);
      if (c.has_output(1)) std::copy_n(w.columns, a.columns(), c.outputs[1].as<float>() + row * a.columns());
    }
  });
}

}  // namespace

extern const OpDef op_svm_classifier = {
    .domain = kMlDomain,
    .name = "SVMClassifier",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
