#include "graph/gradient.h"
#include "ops/cumulative.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  visit_numeric(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cumulate<T>(c, 1, [](ComputeType<T> a, ComputeType<T> b) {
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<WrapType<T>>(a) * static_cast<WrapType<T>>(b));
      else
        return a * b;
    });
  });
}

void gradient(GradientContext& c) {
  const CumulativeAttrs& a = c.attrs<CumulativeAttrs>();
  c.set(0,
        c.own_op("CumProdGradient", {c.in(0), c.gradient(), c.in(1)},
                 c.attributes().set("reverse", int64_t{a.reverse}).set("exclusive", int64_t{a.exclusive})));
}

}  // namespace

extern const OpDef op_cum_prod = {
    .name = "CumProd",
    .inputs = {2, 2},
    .attrs = cumulative_attrs,
    .infer = infer_cumulative,
    .alias = alias_cumulative,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
