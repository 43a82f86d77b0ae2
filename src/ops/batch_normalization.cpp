// BatchNormalization. In training, on channels-last tensors, a pass of ours may give it an addend, input 5,
// and a Relu behind both: Y = relu(normalized X + Z).
#include <cmath>

#include "graph/gradient.h"
#include "kernels/batch_norm.h"
#include "kernels/normalize.h"
#include "ops/batch_norm.h"
#include "ops/channels_last.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/normalization.h"

namespace plimsoll {
namespace {

struct BatchNormAttrs {
  float epsilon = 1e-5f;
  float momentum = 0.9f;
  bool trains = false;         // opset 14 on: an attribute; before: there are outputs besides Y
  bool per_channel = true;     // spatial = 0 before opset 9: statistics for every element of a sample
  bool channels_last = false;  // internal
  bool relu = false;           // internal
};

constexpr size_t kAddend = 5;

const void* attrs(AttrContext& c) {
  BatchNormAttrs* a = c.make<BatchNormAttrs>();
  unary_attrs(c);
  a->epsilon = c.real("epsilon", 1e-5f);
  a->momentum = c.real("momentum", 0.9f);
  a->channels_last = read_channels_last(c);
  if (c.node().domain == kPlimsollDomain) a->relu = c.integer("relu", 0) != 0;
  if (c.opset() < 9) a->per_channel = c.integer("spatial", 1) != 0;
  if (c.opset() < 7) c.ignore("is_test");
  size_t outputs = 0;
  for (const Edge* edge : c.node().outputs) outputs += edge != nullptr;
  if (c.opset() < 14 && c.node().domain != kPlimsollDomain) {
    a->trains = outputs > 1;
  } else {
    a->trains = c.integer("training_mode", 0) != 0;
    const size_t most = !a->trains ? 1 : c.node().domain == kPlimsollDomain ? 5 : 3;
    if (outputs > most)
      c.reject("expected at most {} outputs with training_mode {}, found {}", most, a->trains ? 1 : 0,
               outputs);
  }
  const bool is_fused = a->relu || c.node().inputs.size() > kAddend;
  if (is_fused && (c.node().domain != kPlimsollDomain || !a->trains || !a->channels_last))
    c.reject("an addend and a Relu are for training with channels last");
  return a;
}

void infer(InferContext& c) {
  const BatchNormAttrs& a = c.attrs<BatchNormAttrs>();
  infer_float_unary(c);
  c.expect_rank(0, 1, kAnyNumber);
  const ElementType statistics = c.type(3);
  for (size_t i = 1; i < 5; ++i) c.expect_type(i, kFloatTypes);
  c.expect_same_type(1, 2);
  c.expect_same_type(3, 4);
  if (c.ranked(0)) {
    Dim channels = 1;  // one dimension: a single channel
    if (c.rank(0) > 1) channels = c.dims(0)[a.channels_last ? c.rank(0) - 1 : 1];
    if (!a.per_channel) channels = product(c.dims(0).subspan(1));
    for (size_t i = 1; i < 5; ++i) {
      if (a.per_channel) {
        expect_channels(c, i, channels);
      } else if (c.ranked(i) && channels.is_constant() && !(product(c.dims(i)) == channels)) {
        c.reject("input {}: expected {} elements, found shape {}", i, channels.value(), to_string(c.dims(i)));
      }
    }
  }
  if (c.has_input(kAddend)) {
    c.expect_same_type(0, kAddend);
    expect_same_dims(c, 0, kAddend);
  }
  for (size_t i = 1; i < 5; ++i) set_output_like(c, i, statistics, i % 2 == 1 ? 3 : 4);
}

void alias(AliasContext& c) {
  c.overwrite(0);
  if (c.has_input(kAddend)) c.overwrite(kAddend);
}

// A factor and a term per channel, and what training sums up; in double for double.
const void* select(SelectContext& c) {
  const int64_t width = c.type(0) == ElementType::kDouble ? sizeof(double) : sizeof(float);
  const int64_t numbers = 2 + (c.attrs<BatchNormAttrs>().trains ? kStatisticsNumbers : 0);
  c.scratch(product(c.dims(1)) * Dim(numbers * width));
  return nullptr;
}

double read(const TensorView& view, int64_t i) {
  return visit_float(view.type, [&](auto tag) {
    return static_cast<double>(load_element(view.as<typename decltype(tag)::type>()[i]));
  });
}

void write(const TensorView& view, int64_t i, double value) {
  visit_float(view.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    view.as<T>()[i] = T(static_cast<ComputeType<T>>(value));
  });
}

// The statistics of the batch at hand, mixed into the running ones; before opset 14 also given out as they
// are.
void keep_statistics(const RunContext& c, int64_t channel, const NormStatistics& batch) {
  const double momentum = double{c.attrs<BatchNormAttrs>().momentum};
  const double running[] = {read(c.inputs[3], channel), read(c.inputs[4], channel)};
  if (c.has_output(1)) write(c.outputs[1], channel, running[0] * momentum + batch.mean * (1 - momentum));
  if (c.has_output(2)) write(c.outputs[2], channel, running[1] * momentum + batch.variance * (1 - momentum));
  if (c.has_output(3)) write(c.outputs[3], channel, batch.mean);
  if (c.has_output(4)) write(c.outputs[4], channel, batch.variance);
}

template <typename T, typename W>
void apply(const RunContext& c, const ChannelLayout& s, const W* a, const W* b) {
  const T *x = c.inputs[0].as<T>(), *z = c.has_input(kAddend) ? c.inputs[kAddend].as<T>() : nullptr;
  T* y = c.outputs[0].as<T>();
  const int threads = s.elements() < 32768 ? 1 : c.threads;
  if (s.inner > 1) {
    return kernels::parallel_for(threads, s.outer * s.channels, [&](int64_t i) {
      const auto channel = static_cast<size_t>(i % s.channels);
      affine_run(x + i * s.inner, y + i * s.inner, s.inner, 0, double{a[channel]}, double{b[channel]});
    });
  }
  const int64_t rows = std::max<int64_t>(1, 16384 / s.channels);
  kernels::parallel_for(threads, (s.outer + rows - 1) / rows, [&](int64_t task) {
    const int64_t start = task * rows * s.channels;
    kernels::normalize_rows<T>({x + start, z == nullptr ? nullptr : z + start, y + start,
                                std::min(rows, s.outer - task * rows), s.channels, a, b,
                                c.attrs<BatchNormAttrs>().relu});
  });
}

template <typename T>
void normalize(const RunContext& c) {
  using W = kernels::LaneOf<T>;
  const BatchNormAttrs& attributes = c.attrs<BatchNormAttrs>();
  const ChannelLayout s = channel_layout(c.inputs[0].dims, attributes.channels_last, attributes.per_channel);
  W* a = reinterpret_cast<W*>(c.scratch);
  W* b = a + s.channels;
  kernels::ChannelSums<W> sums;
  const double count = static_cast<double>(s.outer * s.inner);
  if (attributes.trains) sums = batch_sums<T>(c.inputs[0].as<T>(), nullptr, s, b + s.channels, c.threads);
  for (int64_t i = 0; i < s.channels; ++i) {
    NormStatistics statistics;
    if (attributes.trains) {
      // As they are given out, for the gradient.
      statistics = {double{sums.mean[i]}, double{static_cast<W>(double{sums.squares[i]} / count)}};
      keep_statistics(c, i, statistics);
    } else {
      statistics = {read(c.inputs[3], i), read(c.inputs[4], i)};
    }
    const NormFactors factors =
        norm_factors(read(c.inputs[1], i), read(c.inputs[2], i), statistics, attributes.epsilon);
    a[i] = static_cast<W>(factors.factor);
    b[i] = static_cast<W>(factors.term);
  }
  if (s.elements() > 0) apply<T, W>(c, s, a, b);
}

void run(const RunContext& c) {
  visit_float(c.inputs[0].type, [&](auto tag) { normalize<typename decltype(tag)::type>(c); });
}

// In inference passes make ScaleShift of it; that one moves.
void layout(LayoutContext& c) {
  const BatchNormAttrs& a = c.attrs<BatchNormAttrs>();
  if (!a.trains || a.channels_last || !a.per_channel) return;
  c.either({0});
  c.changes().set("channels_last", int64_t{1});
  c.changes().set("training_mode", int64_t{1});
}

void gradient(GradientContext& c) {
  const BatchNormAttrs& a = c.attrs<BatchNormAttrs>();
  if (c.gradient() == nullptr) return;
  if (a.relu || c.node().inputs.size() > kAddend) c.reject("what a pass has fused has no gradient");
  std::vector<Edge*> inputs{c.in(0), c.gradient(), c.in(1)};
  if (!a.trains) inputs.insert(inputs.end(), {c.in(3), c.in(4)});
  const AttributeList attributes = c.attributes()
                                       .set("epsilon", a.epsilon)
                                       .set("per_channel", int64_t{a.per_channel})
                                       .set("channels_last", int64_t{a.channels_last});
  const Node* node =
      c.build.emit(kPlimsollDomain, "BatchNormalizationGradient", inputs, attributes.list(), 3);
  for (size_t i = 0; i < 3; ++i) c.set(i, node->outputs[i]);
  if (a.trains || (!c.wants(3) && !c.wants(4))) return;
  // With inverse = 1 / (variance + epsilon): of the mean -dbias * scale * sqrt(inverse), of the variance
  // -dscale * scale * inverse / 2.
  const ElementType type = c.type(1);
  Edge* inverse = c.op("Reciprocal", {c.op("Add", {c.in(4), c.scalar(c.type(4), double{a.epsilon})})});
  if (c.type(4) != type) inverse = c.op("CastLike", {inverse, c.in(1)});
  const auto like = [&](size_t i, Edge* edge) {
    return c.type(i) == type ? edge : c.op("CastLike", {edge, c.in(i)});
  };
  Edge* of_mean = c.op("Mul", {node->outputs[2], c.op("Mul", {c.in(1), c.op("Sqrt", {inverse})})});
  c.set(3, like(3, c.op("Neg", {of_mean})));
  Edge* of_variance = c.op("Mul", {node->outputs[1], c.op("Mul", {c.in(1), inverse})});
  c.set(4, like(4, c.op("Mul", {of_variance, c.scalar(type, -0.5)})));
}

}  // namespace

extern const OpDef op_batch_normalization = {
    .name = "BatchNormalization",
    .inputs = {5, 6},
    .outputs = {1, 5},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout,
    .channels_last = true,
    .gradient = gradient,
};

}  // namespace plimsoll
