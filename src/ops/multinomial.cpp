#include <algorithm>

#include "graph/gradient.h"
#include "kernels/unary.h"
#include "ops/random_source.h"

namespace plimsoll {
namespace {

struct MultinomialAttrs {
  RandomSeed seed;
  ElementType type = ElementType::kInt32;
  int64_t samples = 1;
};

const void* attrs(AttrContext& c) {
  MultinomialAttrs* a = c.make<MultinomialAttrs>();
  a->seed = real_seed(c);
  const ElementType type = random_type(c, kIndexTypes);
  if (type != ElementType::kUndefined) a->type = type;
  a->samples = c.integer("sample_size", 1);
  if (a->samples < 1) c.reject("attribute 'sample_size': expected at least 1, found {}", a->samples);
  return a;
}

void infer(InferContext& c) {
  const MultinomialAttrs& a = c.attrs<MultinomialAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_rank(0, 2, 2);
  const Dim batch = c.ranked(0) ? c.dims(0)[0] : c.unknown("");
  if (c.ranked(0) && c.dims(0)[1] == Dim(0)) c.reject("expected at least one class, found none");
  c.set_output(0, a.type, std::vector<Dim>{batch, a.samples});
}

// The sums of the probabilities of a row.
const void* select(SelectContext& c) {
  if (c.ranked(0)) c.scratch(c.dims(0)[1] * Dim(sizeof(double)));
  return nullptr;
}

template <typename T>
void sum_probabilities(const RunContext& c, const T* logarithms, int64_t classes, double* sums) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < classes; ++i)
    largest = std::max(largest, static_cast<double>(load_element(logarithms[i])));
  for (int64_t i = 0; i < classes; ++i) sums[i] = static_cast<double>(load_element(logarithms[i])) - largest;
  kernels::unary_f64({kernels::UnaryKind::kExp}, sums, sums, classes);
  double total = 0;
  for (int64_t i = 0; i < classes; ++i) sums[i] = total += sums[i];
  if (!(total > 0))
    fail(ErrorCode::kInvalidArgument,
         "{}: expected log-probabilities of which one is finite, found none or NaN", c.node->label());
}

void run(const RunContext& c) {
  const MultinomialAttrs& a = c.attrs<MultinomialAttrs>();
  const kernels::RandomStream stream = random_stream(c, a.seed);
  const int64_t batch = c.inputs[0].dims[0], classes = c.inputs[0].dims[1];
  double* sums = c.scratch_as<double>(0);
  for (int64_t row = 0; row < batch; ++row) {
    visit_float(c.inputs[0].type, [&](auto tag) {
      sum_probabilities(c, c.inputs[0].as<typename decltype(tag)::type>() + row * classes, classes, sums);
    });
    for (int64_t i = row * a.samples; i < (row + 1) * a.samples; ++i) {
      double u;
      random_uniform(stream, i, 1, &u);
      const auto* found = std::upper_bound(sums, sums + classes - 1, u * sums[classes - 1]);
      if (a.type == ElementType::kInt32) {
        c.outputs[0].as<int32_t>()[i] = static_cast<int32_t>(found - sums);
      } else {
        c.outputs[0].as<int64_t>()[i] = found - sums;
      }
    }
  }
}

}  // namespace

extern const OpDef op_multinomial = {
    .name = "Multinomial",
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
