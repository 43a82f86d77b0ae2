#include "graph/gradient.h"
#include "ops/cumulative.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cumulate<T>(c, 0, [](ComputeType<T> a, ComputeType<T> b) {
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<WrapType<T>>(a) + static_cast<WrapType<T>>(b));
      else
        return a + b;
    });
  });
}

void gradient(GradientContext& c) {
  const CumulativeAttrs& a = c.attrs<CumulativeAttrs>();
  AttributeList attributes =
      c.attributes().set("reverse", int64_t{!a.reverse}).set("exclusive", int64_t{a.exclusive});
  c.set(0, c.op("CumSum", {c.gradient(), c.in(1)}, attributes));
}

}  // namespace

extern const OpDef op_cum_sum = {
    .name = "CumSum",
    .inputs = {2, 2},
    .attrs = cumulative_attrs,
    .infer = infer_cumulative,
    .alias = alias_cumulative,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
