#include <cmath>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
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
  if (g.pixels > 0 && (p == 1 || p == 2))
    return reduce_rows(c, p == 1 ? Reduction::kL1 : Reduction::kL2, g.batch * g.channels, g.pixels);
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = c.inputs[0].as<T>();
    kernels::parallel_for(c.threads, g.batch * g.channels, [&](int64_t i) {
      double sum = 0;
      for (int64_t k = i * g.pixels; k < (i + 1) * g.pixels; ++k)
        sum += std::pow(std::fabs(static_cast<double>(static_cast<WideType<T>>(x[k]))), p);
      c.outputs[0].as<T>()[i] = narrowed<T>(std::pow(sum, 1 / p));
    });
  });
}

// dy * sign(x) * (|x| / y) ^ (p - 1)
void gradient(GradientContext& c) {
  const double p = c.attrs<GlobalLpPoolAttrs>().p;
  Edge *x = c.in(0), *y = c.out(0), *dy = c.gradient();
  if (p == 2) return c.set(0, c.op("Mul", {x, c.op("Div", {dy, y})}));
  Edge* ratio = c.op("Div", {c.op("Abs", {x}), y});
  Edge* power = c.op("Mul", {c.op("Sign", {x}), c.op("Pow", {ratio, c.scalar(p - 1)})});
  c.set(0, c.op("Mul", {power, dy}));
}

}  // namespace

extern const OpDef op_global_lp_pool = {
    .name = "GlobalLpPool",
    .attrs = attrs,
    .infer = infer_global_pool,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
