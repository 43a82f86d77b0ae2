#include "kernels/inner_products.h"
#include "kernels/parallel.h"
#include "ops/feature_rows.h"
#include "ops/score_transform.h"

namespace plimsoll {
namespace {

struct RegressorAttrs {
  std::span<const float> coefficients;  // [targets, features]
  std::span<const float> intercepts;    // one for each target, or none
  int64_t targets = 1;
  PostTransform transform = PostTransform::kNone;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<RegressorAttrs>();
  a->coefficients = c.reals("coefficients");
  a->intercepts = c.reals("intercepts");
  a->targets = c.integer("targets", 1);
  a->transform = read_post_transform(c);
  const auto size = static_cast<int64_t>(a->coefficients.size());
  if (a->targets < 1 || size == 0 || size % a->targets != 0)
    c.reject("attribute 'coefficients': expected some for each of {} targets, found {}", a->targets, size);
  if (!a->intercepts.empty() && static_cast<int64_t>(a->intercepts.size()) != a->targets)
    c.reject("attribute 'intercepts': expected {} as there are targets, or none, found {}", a->targets,
             a->intercepts.size());
  return a;
}

int64_t features(const RegressorAttrs& a) {
  return static_cast<int64_t>(a.coefficients.size()) / a.targets;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RegressorAttrs>();
  expect_feature_rows(c, features(a));
  c.set_output(0, ElementType::kFloat,
               std::vector<Dim>{c.ranked(0) ? row_count(c) : c.unknown("rows"), Dim(a.targets)});
}

const void* select(SelectContext& c) {
  float_features_scratch(c);
  return nullptr;
}

void run(const RunContext& c) {
  const auto& a = c.attrs<RegressorAttrs>();
  const int64_t rows = feature_rows(c.inputs[0]).rows, width = features(a);
  const float* x = float_features(c, 0);
  auto* y = c.outputs[0].as<float>();
  kernels::parallel_for(rows * width * a.targets > 65536 ? c.threads : 1, rows, [&](int64_t row) {
    float* scores = y + row * a.targets;
    kernels::inner_products_f32(x + row * width, 1, a.coefficients.data(), a.targets, width,
                                a.intercepts.empty() ? nullptr : a.intercepts.data(), scores);
    if (a.targets > 1)
      transform_scores(a.transform, {scores, static_cast<size_t>(a.targets)});
    else
      scores[0] = transform_single(a.transform, scores[0]);
  });
}

}  // namespace

extern const OpDef op_linear_regressor = {
    .domain = kMlDomain,
    .name = "LinearRegressor",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
