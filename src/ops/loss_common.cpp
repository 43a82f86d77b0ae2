#include "ops/loss_common.h"

#include <array>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/loss_samples.h"
#include "tensor/half_bits.h"

namespace plimsoll {
const void* loss_attrs(AttrContext& c) {
  auto* a = c.make<LossAttrs>();
  const std::string_view reduction = c.text("reduction", "mean");
  if (reduction == "none") {
    a->reduction = LossReduction::kNone;
  } else if (reduction == "sum") {
    a->reduction = LossReduction::kSum;
  } else if (reduction != "mean") {
    c.reject("attribute 'reduction': expected none, sum or mean, found '{}'", reduction);
  }
  a->ignores = c.has("ignore_index");
  if (a->ignores) a->ignored = c.integer("ignore_index");
  return a;
}

void infer_loss(InferContext& c) {
  c.expect_type(kScores, kFloatTypes);
  c.expect_type(kTargets, kIndexTypes);
  c.expect_rank(kScores, 2, InferContext::kMaxRank);
  c.expect_rank(kTargets, 1, InferContext::kMaxRank);
  if (c.has_input(kWeights)) {
    c.expect_same_type(kScores, kWeights);
    c.expect_rank(kWeights, 1, 1);
    if (c.ranked(kScores) && c.ranked(kWeights)) unify(c, c.dims(kScores)[1], c.dims(kWeights)[0]);
  }
  const bool scalar = c.attrs<LossAttrs>().reduction != LossReduction::kNone;
  if (!c.ranked(kScores)) {
    c.set_unranked_output(1, c.type(kScores));
    if (scalar) return c.set_output(0, c.type(kScores), std::vector<Dim>{});
    return c.set_unranked_output(0, c.type(kScores));
  }
  std::vector<Dim> samples(c.dims(kScores).begin(), c.dims(kScores).end());
  samples.erase(samples.begin() + 1);
  if (c.ranked(kTargets)) {
    c.expect_rank(kTargets, samples.size(), samples.size());
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = unify(c, samples[i], c.dims(kTargets)[i]);
  }
  c.set_output(0, c.type(kScores), scalar ? std::vector<Dim>{} : samples);
  c.set_output(1, c.type(kScores), c.dims(kScores));
}

namespace {

template <typename T, typename W>
void write_log_probabilities(const Samples& s, int64_t strip, const T* x, T* y, const Normalizer<W>& n) {
  const int64_t first = s.first(strip), count = s.size(strip);
  W block[kBlock];
  if (s.inner > 1) {
    for (int64_t k = 0; k < s.classes; ++k) {
      const int64_t at = s.offset(first) + k * s.inner;
      widen(x + at, block, count);
      for (int64_t i = 0; i < count; ++i) block[i] = block[i] - n.largest[i] - n.log_sum[i];
      narrow(block, y + at, count);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t start = 0; start < s.classes; start += kBlock) {
      const int64_t at = s.offset(first + i) + start, part = std::min(kBlock, s.classes - start);
      widen(x + at, block, part);
      for (int64_t k = 0; k < part; ++k) block[k] = block[k] - n.largest[i] - n.log_sum[i];
      narrow(block, y + at, part);
    }
  }
}

struct Partial {
  double loss = 0, weight = 0;
  bool wrong = false;
  int64_t target = 0;  // the first that is no class
};

template <typename T>
class LossRun {
 public:
  using W = WideType<T>;
  LossRun(const RunContext& c, bool softmax)
      : c_(c), a_(c.attrs<LossAttrs>()), s_(samples_of(c.inputs[kScores])), softmax_(softmax) {}

  void run() {
    std::array<Partial, kChunks> partials;
    const int64_t chunks = std::min(kChunks, s_.strips);
    const bool small = s_.count * (softmax_ ? s_.classes : 1) < 16384;
    kernels::parallel_for(small ? 1 : c_.threads, chunks, [&](int64_t chunk) {
      const int64_t end = s_.strips * (chunk + 1) / chunks;
      for (int64_t strip = s_.strips * chunk / chunks; strip < end; ++strip)
        run_strip(strip, partials[static_cast<size_t>(chunk)]);
    });
    Partial total;
    for (const Partial& p : partials) {
      if (p.wrong)
        fail(ErrorCode::kInvalidArgument, "{}: target {} is outside [0, {})", c_.node->label(), p.target,
             s_.classes);
      total.loss += p.loss;
      total.weight += p.weight;
    }
    if (a_.reduction == LossReduction::kNone || !c_.has_output(0)) return;
    const double result = a_.reduction == LossReduction::kMean ? total.loss / total.weight : total.loss;
    c_.outputs[0].as<T>()[0] = narrowed<T>(result);
  }

 private:
  void run_strip(int64_t strip, Partial& partial) const {
    const T* x = c_.inputs[kScores].as<T>();
    Normalizer<W> n;
    if (softmax_) {
      normalize_strip(s_, strip, x, n);
      if (c_.has_output(1)) write_log_probabilities(s_, strip, x, c_.outputs[1].as<T>(), n);
    }
    const int64_t first = s_.first(strip);
    for (int64_t i = 0; i < s_.size(strip); ++i) {
      const int64_t target = index_at(c_.inputs[kTargets], first + i);
      double loss = 0;
      if (a_.ignores && target == a_.ignored) {
        loss = 0;
      } else if (target < 0 || target >= s_.classes) {
        if (!partial.wrong) partial.target = target;
        partial.wrong = true;
      } else {
        W score = load_inline(x[s_.offset(first + i) + target * s_.inner]), weight = 1;
        if (softmax_) score = score - n.largest[i] - n.log_sum[i];
        if (c_.has_input(kWeights)) weight = load_inline(c_.inputs[kWeights].as<T>()[target]);
        loss = -static_cast<double>(score) * static_cast<double>(weight);
        partial.weight += static_cast<double>(weight);
      }
      partial.loss += loss;
      if (a_.reduction == LossReduction::kNone && c_.has_output(0))
        c_.outputs[0].as<T>()[first + i] = narrowed<T>(loss);
    }
  }

  const RunContext& c_;
  const LossAttrs& a_;
  const Samples s_;
  const bool softmax_;
};

}  // namespace

void run_loss(const RunContext& c, bool softmax) {
  visit_float(c.inputs[kScores].type,
              [&](auto tag) { LossRun<typename decltype(tag)::type>(c, softmax).run(); });
}

void gradient_loss(GradientContext& c, bool softmax) {
  const LossAttrs& a = c.attrs<LossAttrs>();
  if (c.gradient(0) != nullptr) {
    AttributeList attributes = c.attributes();
    attributes.set("softmax", int64_t{softmax});
    attributes.set("reduction", a.reduction == LossReduction::kNone  ? "none"
                                : a.reduction == LossReduction::kSum ? "sum"
                                                                     : "mean");
    if (a.ignores) attributes.set("ignore_index", a.ignored);
    c.set(kScores, c.own_op("ClassLossGradient",
                            {c.in(kScores), c.in(kTargets), c.in(kWeights), c.gradient(0)}, attributes));
  }
  if (softmax && c.gradient(1) != nullptr)
    c.set(kScores, c.own_op("SoftmaxGradient", {c.out(1), c.gradient(1)},
                            c.attributes().set("axis", int64_t{1}).set("logarithm", int64_t{1})));
}

}  // namespace plimsoll
