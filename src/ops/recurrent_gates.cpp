#include "kernels/unary.h"
#include "ops/recurrent_run.h"

namespace plimsoll {
namespace {

void map(const kernels::Unary& f, float* x, int64_t count) {
  kernels::unary_f32(f, x, x, count);
}
void map(const kernels::Unary& f, double* x, int64_t count) {
  kernels::unary_f64(f, x, x, count);
}

template <typename Number>
void apply(const GateFunction& f, Number* x, int64_t count) {
  using kernels::UnaryKind;
  const auto alpha = static_cast<Number>(f.alpha), beta = static_cast<Number>(f.beta);
  const auto scale = [&](Number by, Number plus) {
    for (int64_t i = 0; i < count; ++i) x[i] = by * x[i] + plus;
  };
  switch (f.kind) {
    case Gate::kSigmoid:
      return map({UnaryKind::kSigmoid}, x, count);
    case Gate::kTanh:
      return map({UnaryKind::kTanh}, x, count);
    case Gate::kRelu:
      return map({UnaryKind::kRelu}, x, count);
    case Gate::kAffine:
      return scale(alpha, beta);
    case Gate::kLeakyRelu:
      return map({UnaryKind::kLeakyRelu, f.alpha}, x, count);
    case Gate::kThresholdedRelu:
      for (int64_t i = 0; i < count; ++i) x[i] = x[i] >= alpha ? x[i] : Number{0};
      return;
    case Gate::kScaledTanh:
      scale(beta, 0);
      map({UnaryKind::kTanh}, x, count);
      return scale(alpha, 0);
    case Gate::kHardSigmoid:
      return map({UnaryKind::kHardSigmoid, f.alpha, f.beta}, x, count);
    case Gate::kElu:
      return map({UnaryKind::kElu, f.alpha}, x, count);
    case Gate::kSoftsign:
      return map({UnaryKind::kSoftsign}, x, count);
    case Gate::kSoftplus:
      return map({UnaryKind::kSoftplus}, x, count);
  }
}

}  // namespace

void apply_gate(const GateFunction& f, float* x, int64_t count) {
  apply(f, x, count);
}
void apply_gate(const GateFunction& f, double* x, int64_t count) {
  apply(f, x, count);
}

}  // namespace plimsoll
