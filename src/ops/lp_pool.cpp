#include <cmath>

#include "graph/gradient.h"
#include "ops/float_blocks.h"
#include "ops/pool_lines.h"

namespace plimsoll {
namespace {

struct LpPoolAttrs : PoolAttrs {
  double p = 2;
};

// Opset 1 has a real p, newer ones an integer.
const void* attrs(AttrContext& c) {
  auto* a = c.make<LpPoolAttrs>();
  read_pool(c, *a);
  a->p = c.opset() < 2 ? static_cast<double>(c.real("p", 2.0f)) : static_cast<double>(c.integer("p", 2));
  if (!(a->p >= 1) || std::isinf(a->p)) c.reject("attribute 'p': expected at least 1, found {}", a->p);
  return a;
}

void infer(InferContext& c) {
  infer_pool(c, kFloatTypes);
}

// Sums in double.
template <typename T>
struct LpNorms {
  using C = ComputeType<T>;
  T* y;
  double p;
  double sums[kPoolBlock];

  void start(int64_t count) { std::fill_n(sums, count, 0.0); }
  void take(const PoolTaps<C>& t) {
    if (p == 2) return add(t, [](double x) { return x * x; });
    if (p == 1) return add(t, [](double x) { return std::fabs(x); });
    add(t, [this](double x) { return std::pow(std::fabs(x), p); });
  }
  void finish(int64_t i, const PoolCounts&, int64_t to) {
    y[to] = narrowed<T>(p == 2 ? std::sqrt(sums[i]) : p == 1 ? sums[i] : std::pow(sums[i], 1 / p));
  }

 private:
  template <typename F>
  void add(const PoolTaps<C>& t, F power) {
    for (int64_t i = t.first; i < t.last; ++i)
      sums[i] += power(static_cast<double>(t.x[(i - t.first) * t.step]));
  }
};

void run(const RunContext& c) {
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    pool_lines(pool_window(c), c.inputs[0].as<T>(),
               LpNorms<T>{c.outputs[0].as<T>(), c.attrs<LpPoolAttrs>().p, {}}, c.threads);
  });
}

void gradient(GradientContext& c) {
  gradient_pool(c, "lp", c.attrs<LpPoolAttrs>().p);
}

}  // namespace

extern const OpDef op_lp_pool = {
    .name = "LpPool",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
