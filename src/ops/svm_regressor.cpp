#include "kernels/inner_products.h"
#include "kernels/parallel.h"
#include "ops/feature_rows.h"
#include "ops/score_transform.h"
#include "ops/svm_kernel.h"

namespace plimsoll {
namespace {

struct RegressorAttrs {
  SvmKernel kernel;
  std::span<const float> coefficients;  // of the support vectors; without any, of the features
  std::span<const float> vectors;       // [supports, features]
  int64_t supports = 0, features = 0;
  float rho = 0;
  bool one_class = false;  // the sign only
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<RegressorAttrs>();
  a->kernel = read_svm_kernel(c);
  a->coefficients = c.reals("coefficients");
  a->vectors = c.reals("support_vectors");
  a->supports = c.integer("n_supports", 0);
  a->one_class = c.integer("one_class", 0) != 0;
  read_post_transform(c);  // one score: none applies, as in ONNX Runtime
  const auto rho = c.reals("rho");
  if (rho.size() != 1) c.reject("attribute 'rho': expected one number, found {}", rho.size());
  a->rho = rho[0];
  if (a->supports < 0) c.reject("attribute 'n_supports': {} is not a number of vectors", a->supports);
  if (a->supports == 0) {
    a->features = static_cast<int64_t>(a->coefficients.size());
    if (a->features == 0) c.reject("attribute 'coefficients': expected some, found none");
    return a;
  }
  if (static_cast<int64_t>(a->coefficients.size()) != a->supports)
    c.reject("attribute 'coefficients': expected {} as there are support vectors, found {}", a->supports,
             a->coefficients.size());
  if (a->vectors.empty() || static_cast<int64_t>(a->vectors.size()) % a->supports != 0)
    c.reject("attribute 'support_vectors': expected {} vectors, found {} numbers", a->supports,
             a->vectors.size());
  a->features = static_cast<int64_t>(a->vectors.size()) / a->supports;
  return a;
}

void infer(InferContext& c) {
  expect_feature_rows(c, c.attrs<RegressorAttrs>().features);
  c.set_output(0, ElementType::kFloat,
               std::vector<Dim>{c.ranked(0) ? row_count(c) : c.unknown("rows"), Dim(1)});
}

// Tasks of one run; each has its own kernel values.
struct RegressorChoice {
  int64_t floats = 0, values = 0;
  int tasks = 1;
};

const void* select(SelectContext& c) {
  auto* choice = c.make<RegressorChoice>();
  choice->tasks = c.threads;
  choice->floats = float_features_scratch(c);
  choice->values = c.scratch(Dim(c.attrs<RegressorAttrs>().supports * 4 * choice->tasks));
  return choice;
}

float predict(const RegressorAttrs& a, const float* x, float* values) {
  float score = 0;
  if (a.supports == 0) {
    kernels::inner_products_f32(x, 1, a.coefficients.data(), 1, a.features, &a.rho, &score);
  } else {
    svm_kernel_values(a.kernel, x, a.vectors.data(), a.supports, a.features, values);
    kernels::inner_products_f32(values, 1, a.coefficients.data(), 1, a.supports, &a.rho, &score);
  }
  if (a.one_class) return score > 0 ? 1.f : -1.f;
  return score;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<RegressorAttrs>();
  const auto& choice = c.choice<RegressorChoice>();
  const int64_t rows = feature_rows(c.inputs[0]).rows;
  const float* x = float_features(c, choice.floats);
  auto* values = c.scratch_as<float>(choice.values);
  kernels::parallel_for(choice.tasks, choice.tasks, [&](int64_t task) {
    for (int64_t row = rows * task / choice.tasks; row < rows * (task + 1) / choice.tasks; ++row)
      c.outputs[0].as<float>()[row] = predict(a, x + row * a.features, values + task * a.supports);
  });
}

}  // namespace

extern const OpDef op_svm_regressor = {
    .domain = kMlDomain,
    .name = "SVMRegressor",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
