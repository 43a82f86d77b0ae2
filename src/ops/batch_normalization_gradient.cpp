// BatchNormalizationGradient(X, dY, scale, mean, variance, bias) -> dX, dscale, dbias. Without mean and
// variance the statistics are those of the batch, which are computed anew, and depend on X. With `of_batch`
// they are those of the batch, given by the forward node; then, on channels-last tensors, dY may be the
// gradient of a Relu behind it (`relu`, which needs the bias).
#include <cmath>

#include "kernels/batch_norm.h"
#include "ops/batch_norm.h"
#include "ops/channels_last.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  float epsilon = 1e-5f;
  bool per_channel = true, channels_last = false;
  bool of_batch = false, relu = false;
};

constexpr size_t kX = 0, kGradient = 1, kScale = 2, kMean = 3, kVariance = 4, kBias = 5;

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->epsilon = c.real("epsilon", 1e-5f);
  a->per_channel = c.integer("per_channel", 1) != 0;
  a->channels_last = read_channels_last(c);
  a->of_batch = c.integer("of_batch", 0) != 0;
  a->relu = c.integer("relu", 0) != 0;
  if (a->of_batch && (!a->channels_last || !a->per_channel))
    c.reject("attribute 'of_batch': expected channels last");
  if (a->relu && !a->of_batch) c.reject("attribute 'relu': expected the batch's statistics");
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  expect_same_dims(c, kX, kGradient);
  for (size_t i = kScale; i < c.input_count(); ++i) {
    if (c.has_input(i)) c.expect_type(i, kFloatTypes);
  }
  if (c.has_input(kMean) != c.has_input(kVariance)) c.reject("expected both a mean and a variance, or none");
  c.expect_rank(kX, 1, kAnyNumber);
  const Attrs& a = c.attrs<Attrs>();
  if (a.of_batch && !c.has_input(kMean)) c.reject("expected the batch's mean and variance");
  if (a.relu != c.has_input(kBias)) c.reject("expected a bias with 'relu' alone");
  if (c.ranked(kX) && c.ranked(kScale)) {
    Dim channels = c.rank(kX) > 1 ? c.dims(kX)[a.channels_last ? c.rank(kX) - 1 : 1] : Dim(1);
    if (!a.per_channel) channels = product(c.dims(kX).subspan(1));
    for (size_t i = kScale; i < c.input_count(); ++i) {
      if (!c.has_input(i) || !c.ranked(i)) continue;
      const Dim found = product(c.dims(i));
      if (channels.is_constant() && found.is_constant() && !(found == channels))
        c.reject("input {}: expected {} elements, found {}", i, channels.value(), found.value());
    }
  }
  set_output_like(c, 0, c.type(kX), kX);
  set_output_like(c, 1, c.type(kScale), kScale);
  set_output_like(c, 2, c.type(kScale), kScale);
}

void alias(AliasContext& c) {
  c.overwrite(kX);
  c.overwrite(kGradient);
}

constexpr int64_t kTerms = 6;  // of dX

// Per channel: what is summed up, and the terms of dX.
const void* select(SelectContext& c) {
  const int64_t width = c.type(kX) == ElementType::kDouble ? sizeof(double) : sizeof(float);
  c.scratch(product(c.dims(kScale)) * Dim((kStatisticsNumbers + kTerms) * width));
  return nullptr;
}

double number(const TensorView& view, int64_t i) {
  double value;
  read_floats(view, i, 1, &value);
  return value;
}

// x was normalized as (x - mean) * inverse, where the batch made mean and inverse, or they were given. What
// is kept of each channel: dx = a * dy + b * (x - mean) + shift.
template <typename T>
class BatchNormGradient {
 public:
  using W = kernels::LaneOf<T>;
  explicit BatchNormGradient(const RunContext& c)
      : c_(c),
        s_(channel_layout(c.inputs[kX].dims, c.attrs<Attrs>().channels_last, c.attrs<Attrs>().per_channel)),
        terms_(reinterpret_cast<W*>(c.scratch)) {}

  void run() {
    const T *x = c_.inputs[kX].as<T>(), *dy = c_.inputs[kGradient].as<T>();
    const kernels::ChannelSums<W> sums = batch_sums<T>(x, dy, s_, terms_ + 4 * s_.channels, c_.threads);
    for (int64_t i = 0; i < s_.channels; ++i) finish_channel(sums, i);
    if (!c_.has_output(0)) return;
    T* dx = c_.outputs[0].as<T>();
    const int64_t c = s_.channels, parts = std::clamp<int64_t>(s_.elements() / 32768, 1, s_.outer);
    const kernels::ChannelTerms<W> terms{terms_, terms_ + c, terms_ + 2 * c, terms_ + 3 * c};
    kernels::parallel_for(c_.threads, parts, [&](int64_t part) {
      const int64_t begin = s_.outer * part / parts, end = s_.outer * (part + 1) / parts;
      const int64_t at = begin * c * s_.inner;
      kernels::channel_terms(x + at, dy + at, dx + at, end - begin, c, s_.inner, terms);
    });
  }

 private:
  void finish_channel(const kernels::ChannelSums<W>& sums, int64_t i) {
    const bool given = c_.has_input(kMean);
    const double count = static_cast<double>(s_.outer * s_.inner), dy = double{sums.dy[i]};
    double mean = double{sums.mean[i]}, variance = double{sums.squares[i]} / count;
    double product = double{sums.product[i]};
    if (given) {
      product += (mean - number(c_.inputs[kMean], i)) * dy;
      mean = number(c_.inputs[kMean], i), variance = number(c_.inputs[kVariance], i);
    }
    const double inverse = 1 / std::sqrt(variance + double{c_.attrs<Attrs>().epsilon});
    const double a = number(c_.inputs[kScale], i) * inverse;
    const auto put = [&](int64_t term, double value) {
      terms_[term * s_.channels + i] = static_cast<W>(value);
    };
    put(0, a);
    put(1, given ? 0 : -a * inverse * inverse * product / count);
    put(2, mean);
    put(3, given ? 0 : -a * dy / count);
    const double of_scale = product * inverse;
    if (c_.has_output(1)) write_floats(c_.outputs[1], i, 1, &of_scale);
    if (c_.has_output(2)) write_floats(c_.outputs[2], i, 1, &dy);
  }

  const RunContext& c_;
  const ChannelLayout s_;
  W* terms_;
};

// The same where the batch's statistics are given, over rows of channels.
template <typename T>
class BatchNormGradientRows {
 public:
  using W = kernels::LaneOf<T>;
  explicit BatchNormGradientRows(const RunContext& c)
      : c_(c),
        s_(channel_layout(c.inputs[kX].dims, true, true)),
        terms_(reinterpret_cast<W*>(c.scratch)),
        sums_(terms_ + kTerms * s_.channels) {}

  void run() {
    for (int64_t i = 0; i < s_.channels; ++i) begin_channel(i);
    const int64_t parts = statistics_parts(s_), channels = s_.channels;
    for_each_part(parts, [&](int64_t part, const kernels::NormGradientRows<T>& job, int64_t) {
      W* sums = sums_ + part * 2 * channels;
      kernels::norm_gradient_sums<T>(job, sums, sums + channels);
    });
    for (int64_t part = 1; part < parts; ++part) {
      const W* other = sums_ + part * 2 * channels;
      for (int64_t i = 0; i < 2 * channels; ++i) sums_[i] += other[i];
    }
    for (int64_t i = 0; i < s_.channels; ++i) finish_channel(i);
    if (!c_.has_output(0)) return;
    T* dx = c_.outputs[0].as<T>();
    for_each_part(std::clamp<int64_t>(s_.elements() / 32768, 1, s_.outer),
                  [&](int64_t, const kernels::NormGradientRows<T>& job, int64_t at) {
                    kernels::norm_gradient_rows<T>(job, term(kSlope), term(kTilt), term(kShift), dx + at);
                  });
  }

 private:
  enum Term : int64_t { kFactor, kOffset, kCenter, kSlope, kTilt, kShift };  // kFactor, kOffset: of the mask
  static_assert(kShift + 1 == kTerms);
  W* term(Term t) const { return terms_ + t * s_.channels; }

  // f(part, job, first element)
  template <typename F>
  void for_each_part(int64_t parts, F&& f) const {
    const bool relu = c_.attrs<Attrs>().relu;
    kernels::parallel_for(c_.threads, parts, [&](int64_t part) {
      const int64_t begin = s_.outer * part / parts, end = s_.outer * (part + 1) / parts;
      const int64_t at = begin * s_.channels;
      f(part,
        kernels::NormGradientRows<T>{c_.inputs[kX].as<T>() + at, c_.inputs[kGradient].as<T>() + at,
                                     end - begin, s_.channels, relu ? term(kFactor) : nullptr,
                                     relu ? term(kOffset) : nullptr, term(kCenter)},
        at);
    });
  }

  NormStatistics statistics(int64_t i) const {
    return {number(c_.inputs[kMean], i), number(c_.inputs[kVariance], i)};
  }

  void begin_channel(int64_t i) const {
    const NormFactors factors =
        norm_factors(number(c_.inputs[kScale], i), c_.has_input(kBias) ? number(c_.inputs[kBias], i) : 0,
                     statistics(i), c_.attrs<Attrs>().epsilon);
    term(kFactor)[i] = static_cast<W>(factors.factor);
    term(kOffset)[i] = static_cast<W>(factors.term);
    term(kCenter)[i] = static_cast<W>(statistics(i).mean);
  }

  void finish_channel(int64_t i) const {
    const double count = static_cast<double>(s_.outer), dy = double{sums_[i]};
    const double product = double{sums_[s_.channels + i]};
    const double inverse = 1 / std::sqrt(statistics(i).variance + double{c_.attrs<Attrs>().epsilon});
    const double slope = number(c_.inputs[kScale], i) * inverse;
    term(kSlope)[i] = static_cast<W>(slope);
    term(kTilt)[i] = static_cast<W>(-slope * inverse * inverse * product / count);
    term(kShift)[i] = static_cast<W>(-slope * dy / count);
    const double of_scale = product * inverse;
    if (c_.has_output(1)) write_floats(c_.outputs[1], i, 1, &of_scale);
    if (c_.has_output(2)) write_floats(c_.outputs[2], i, 1, &dy);
  }

  const RunContext& c_;
  const ChannelLayout s_;
  W *terms_, *sums_;
};

void run(const RunContext& c) {
  if (c.inputs[kX].elements() == 0) {
    for (size_t i = 1; i < 3; ++i) {
      const double zero = 0;
      for (int64_t k = 0; c.has_output(i) && k < c.outputs[i].elements(); ++k)
        write_floats(c.outputs[i], k, 1, &zero);
    }
    return;
  }
  visit_float(c.inputs[kX].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (c.attrs<Attrs>().of_batch) return BatchNormGradientRows<T>(c).run();
    BatchNormGradient<T>(c).run();
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 12;
  return {checked_mul(kOperationsPerElement, product(c.dims(kX)).value()), tensor_bytes(c)};
}

void layout(LayoutContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (a.channels_last || !a.per_channel) return;
  c.either({kX, kGradient});
  c.changes().set("channels_last", int64_t{1});
}

}  // namespace

extern const OpDef op_batch_normalization_gradient = {
    .domain = kPlimsollDomain,
    .name = "BatchNormalizationGradient",
    .inputs = {3, 6},
    .outputs = {1, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .run = run,
    .cost = cost,
    .layout = layout,
};

}  // namespace plimsoll
