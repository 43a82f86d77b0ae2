// ClassLossGradient(scores, targets, weights, dLoss): the gradient of NegativeLogLikelihoodLoss, or with
// `softmax` of SoftmaxCrossEntropyLoss, with respect to the scores. It may take their place.
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/loss_common.h"
#include "ops/loss_samples.h"

namespace plimsoll {
namespace {

struct GradientAttrs : LossAttrs {
  bool softmax = false;
};

constexpr size_t kGradient = 3;

const void* attrs(AttrContext& c) {
  auto* a = c.make<GradientAttrs>();
  static_cast<LossAttrs&>(*a) = *static_cast<const LossAttrs*>(loss_attrs(c));
  a->softmax = c.integer("softmax", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kScores, kFloatTypes);
  c.expect_type(kTargets, kIndexTypes);
  c.expect_rank(kScores, 2, InferContext::kMaxRank);
  if (c.has_input(kWeights)) c.expect_same_type(kScores, kWeights);
  c.expect_same_type(kScores, kGradient);
  if (c.ranked(kScores)) {
    std::vector<Dim> samples(c.dims(kScores).begin(), c.dims(kScores).end());
    samples.erase(samples.begin() + 1);
    expect_dims(c, kTargets, samples);
    expect_dims(c, kWeights, {c.dims(kScores)[1]});
    if (c.attrs<GradientAttrs>().reduction == LossReduction::kNone) expect_dims(c, kGradient, samples);
  }
  if (c.attrs<GradientAttrs>().reduction != LossReduction::kNone) {
    const Dim losses = c.ranked(kGradient) ? product(c.dims(kGradient)) : Dim(1);
    if (losses.is_constant() && losses.value() != 1)
      c.reject("dLoss: expected one element, found shape {}", to_string(c.dims(kGradient)));
  }
  set_output_like(c, 0, c.type(kScores), kScores);
}

void alias(AliasContext& c) {
  c.overwrite(kScores);
}

template <typename T>
class LossGradient {
 public:
  using W = WideType<T>;
  explicit LossGradient(const RunContext& c)
      : c_(c), a_(c.attrs<GradientAttrs>()), s_(samples_of(c.inputs[kScores])) {}

  void run() {
    check_targets();
    if (a_.reduction != LossReduction::kNone) {
      widen(c_.inputs[kGradient].as<T>(), &common_, 1);
      if (a_.reduction == LossReduction::kMean) common_ = static_cast<W>(double{common_} / total_weight());
    }
    const bool small = s_.count * s_.classes < 16384;
    kernels::parallel_for(small ? 1 : c_.threads, s_.strips, [&](int64_t strip) { run_strip(strip); });
  }

 private:
  bool is_ignored(int64_t target) const { return a_.ignores && target == a_.ignored; }

  // As the loss does, which may run later: before threads share the work, and before anything is updated.
  void check_targets() const {
    for (int64_t i = 0; i < s_.count; ++i) {
      const int64_t target = index_at(c_.inputs[kTargets], i);
      if (!is_ignored(target) && (target < 0 || target >= s_.classes))
        fail(ErrorCode::kInvalidArgument, "{}: target {} is outside [0, {})", c_.node->label(), target,
             s_.classes);
    }
  }

  W weight_of(int64_t target) const {
    if (is_ignored(target)) return 0;
    W weight = 1;
    if (c_.has_input(kWeights)) widen(c_.inputs[kWeights].as<T>() + target, &weight, 1);
    return weight;
  }

  double total_weight() const {
    double sum = 0;
    for (int64_t i = 0; i < s_.count; ++i)
      sum += static_cast<double>(weight_of(index_at(c_.inputs[kTargets], i)));
    return sum;
  }

  void run_strip(int64_t strip) const {
    const int64_t first = s_.first(strip), count = s_.size(strip);
    W factors[kStrip];
    for (int64_t i = 0; i < count; ++i) {
      W own = common_;
      if (a_.reduction == LossReduction::kNone) widen(c_.inputs[kGradient].as<T>() + first + i, &own, 1);
      const W weight = weight_of(index_at(c_.inputs[kTargets], first + i));
      factors[i] = weight == 0 ? 0 : weight * own;
    }
    const T* x = c_.inputs[kScores].as<T>();
    T* dx = c_.outputs[0].as<T>();
    if (a_.softmax) {
      Normalizer<W> n;
      normalize_strip(s_, strip, x, n);
      write_probabilities(first, count, x, dx, n, factors);
    } else {
      write_zeros(first, count, dx);
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t target = index_at(c_.inputs[kTargets], first + i);
      if (weight_of(target) == 0) continue;
      T* at = dx + s_.offset(first + i) + target * s_.inner;
      W value;
      widen(at, &value, 1);
      *at = narrowed<T>(value - factors[i]);
    }
  }

  // exp(x - largest - log_sum) * factor
  void write_probabilities(int64_t first, int64_t count, const T* x, T* dx, const Normalizer<W>& n,
                           const W* factors) const {
    W block[kBlock];
    if (s_.inner > 1) {
      for (int64_t k = 0; k < s_.classes; ++k) {
        const int64_t at = s_.offset(first) + k * s_.inner;
        widen(x + at, block, count);
        for (int64_t i = 0; i < count; ++i) block[i] = block[i] - n.largest[i] - n.log_sum[i];
        exp_block(block, count);
        for (int64_t i = 0; i < count; ++i) block[i] *= factors[i];
        narrow(block, dx + at, count);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = s_.offset(first + i);
      for (int64_t start = 0; start < s_.classes; start += kBlock) {
        const int64_t size = std::min(kBlock, s_.classes - start);
        widen(x + at + start, block, size);
        for (int64_t k = 0; k < size; ++k) block[k] = block[k] - n.largest[i] - n.log_sum[i];
        exp_block(block, size);
        for (int64_t k = 0; k < size; ++k) block[k] *= factors[i];
        narrow(block, dx + at + start, size);
      }
    }
  }

  void write_zeros(int64_t first, int64_t count, T* dx) const {
    if (s_.inner == 1) {
      std::fill_n(dx + s_.offset(first), count * s_.classes, T{});
      return;
    }
    for (int64_t k = 0; k < s_.classes; ++k) std::fill_n(dx + s_.offset(first) + k * s_.inner, count, T{});
  }

  const RunContext& c_;
  const GradientAttrs& a_;
  const Samples s_;
  W common_ = 0;
};

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  visit_float(c.inputs[kScores].type, [&](auto tag) { LossGradient<typename decltype(tag)::type>(c).run(); });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 20;
  return {checked_mul(kOperationsPerElement, product(c.dims(0)).value()), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_class_loss_gradient = {
    .domain = kPlimsollDomain,
    .name = "ClassLossGradient",
    .inputs = {4, 4},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .optional_inputs = 1u << kWeights,
};

}  // namespace plimsoll
