#include <cmath>

#include "ops/global_pool.h"
#include "ops/layout.h"

namespace plimsoll {
namespace {

struct GlobalLpPoolAttrs : PoolAttrs {
  double p = 2;
};

// Opset 1 has a real p, newer ones an integer.
const void* attrs(AttrContext& c) {
  auto* a = c.make<GlobalLpPoolAttrs>();
  a->p = c.opset() < 2 ? static_cast<double>(c.real("p", 2.0f)) : static_cast<double>(c.integer("p", 2));
  if (!(a->p >= 1) || std::isinf(a->p)) c.reject("attribute 'p': expected at least 1, found {}", a->p);
  return a;
}

void run(const RunContext& c) {
  const GlobalPool g = global_pool(c);
  const double p = c.attrs<GlobalLpPoolAttrs>().p;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = PoolAccumulator<T>;
    const A power = static_cast<A>(p);
    const int64_t step = g.pixels;
    kernels::parallel_for(c.threads, g.batch * g.channels, [&](int64_t i) {
      const T* x = c.inputs[0].as<T>() + i * step;
      double sum = 0;
      for (int64_t k = 0; k < step; ++k) {
        const double value = std::fabs(static_cast<double>(static_cast<A>(x[k])));
        sum += p == 2 ? value * value : p == 1 ? value : std::pow(value, static_cast<double>(power));
      }
      const double norm = p == 2 ? std::sqrt(sum) : p == 1 ? sum : std::pow(sum, 1 / p);
      c.outputs[0].as<T>()[i] = static_cast<T>(static_cast<A>(norm));
    });
  });
}

}  // namespace

extern const OpDef op_global_lp_pool = {
    .name = "GlobalLpPool",
    .attrs = attrs,
    .infer = infer_global_pool,
    .run = run,
};

}  // namespace plimsoll
