#include "graph/gradient.h"
#include "ops/random_source.h"

namespace plimsoll {
namespace {

struct BernoulliAttrs {
  RandomSeed seed;
  ElementType type = ElementType::kUndefined;  // of the input
};

const void* attrs(AttrContext& c) {
  BernoulliAttrs* a = c.make<BernoulliAttrs>();
  a->seed = real_seed(c);
  a->type = random_type(c, kNumericTypes | kBoolType);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  const ElementType type = c.attrs<BernoulliAttrs>().type;
  set_output_like(c, 0, type == ElementType::kUndefined ? c.type(0) : type, 0);
}

// 1 with the probability that the input gives. Numbers of 53 bits serve every type alike.
void run(const RunContext& c) {
  const kernels::RandomStream stream = random_stream(c, c.attrs<BernoulliAttrs>().seed);
  const auto draw = [&](int64_t first, int64_t count, double* numbers) {
    random_uniform(stream, first, count, numbers);
    visit_float(c.inputs[0].type, [&](auto tag) {
      const auto* p = c.inputs[0].as<typename decltype(tag)::type>() + first;
      for (int64_t i = 0; i < count; ++i)
        numbers[i] = numbers[i] < static_cast<double>(load_element(p[i])) ? 1 : 0;
    });
  };
  draw_pieces<double>(c, c.outputs[0].elements(), draw,
                      [&](int64_t first, const double* numbers, int64_t count) {
                        visit_bool_or_numeric(c.outputs[0].type, [&](auto tag) {
                          using Y = typename decltype(tag)::type;
                          Y* y = c.outputs[0].as<Y>() + first;
                          for (int64_t i = 0; i < count; ++i)
                            y[i] = static_cast<Y>(static_cast<ComputeType<Y>>(numbers[i]));
                        });
                      });
}

}  // namespace

extern const OpDef op_bernoulli = {
    .name = "Bernoulli",
    .deterministic = false,
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
