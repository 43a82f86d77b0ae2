// How many elements of a value, or of its distance from zero, fall into each of so many equal bins; the last
// one is closed. What is outside is not counted.
#include <algorithm>
#include <cmath>

#include "graph/op_def.h"

namespace plimsoll {
namespace {

constexpr int64_t kMostBins = 1 << 20;

struct HistogramAttrs {
  int64_t bins = 0;
  float low = 0, high = 0;
  bool absolute = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<HistogramAttrs>();
  a->bins = c.integer("bins");
  a->low = c.real("low"), a->high = c.real("high");
  a->absolute = c.integer("absolute", 0) != 0;
  if (a->bins < 1 || a->bins > kMostBins)
    c.reject("attribute 'bins': expected 1 to {}, found {}", kMostBins, a->bins);
  if (!(a->low < a->high) || !std::isfinite(a->low) || !std::isfinite(a->high))
    c.reject("expected a finite range, found {} to {}", a->low, a->high);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  const Dim length[] = {Dim(c.attrs<HistogramAttrs>().bins)};
  c.set_output(0, ElementType::kInt64, length);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<HistogramAttrs>();
  int64_t* counts = c.outputs[0].as<int64_t>();
  std::fill_n(counts, a.bins, 0);
  const double width = (static_cast<double>(a.high) - a.low) / static_cast<double>(a.bins);
  const auto edge = [&](int64_t i) { return static_cast<float>(a.low + static_cast<double>(i) * width); };
  visit_float(c.inputs[0].type, [&](auto tag) {
    const auto* x = c.inputs[0].as<typename decltype(tag)::type>();
    const int64_t count = c.inputs[0].elements();
    for (int64_t i = 0; i < count; ++i) {
      const auto value = a.absolute ? std::fabs(static_cast<float>(x[i])) : static_cast<float>(x[i]);
      if (!(value >= a.low && value <= a.high)) continue;
      auto bin = std::min(static_cast<int64_t>((static_cast<double>(value) - a.low) / width), a.bins - 1);
      // The quotient may be one off: the edges decide.
      if (bin > 0 && value < edge(bin)) --bin;
      if (bin + 1 < a.bins && value >= edge(bin + 1)) ++bin;
      ++counts[bin];
    }
  });
}

}  // namespace

extern const OpDef op_observe_histogram = {
    .domain = kPlimsollDomain,
    .name = "ObserveHistogram",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
