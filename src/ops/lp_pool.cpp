#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/pool_common.h"

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

double power(double x, double p) {
  if (p == 2) return x * x;
  return p == 1 ? std::fabs(x) : std::pow(std::fabs(x), p);
}
double root(double x, double p) {
  if (p == 2) return std::sqrt(x);
  return p == 1 ? x : std::pow(x, 1 / p);
}

template <typename T>
void pool(const Window& w, double p, const T* x, T* y) {
  const SpatialStrides in = strides_of(w.rank, w.channels, w.in, w.channels_last);
  for_each_window(w, [&](int64_t n, int64_t c, const Spatial& at, int64_t to) {
    double sum = 0;
    for_each_tap(w, at, [&](const Spatial& from) {
      int64_t offset = n * in.batch + c * in.channel;
      for (size_t i = 0; i < w.rank; ++i) offset += from[i] * in.spatial[i];
      double value;
      widen(x + offset, &value, 1);
      sum += power(value, p);
    });
    y[to] = narrowed<T>(root(sum, p));
  });
}

void run(const RunContext& c) {
  const Window w = pool_window(c);
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (w.channels_last) return pool(w, c.attrs<LpPoolAttrs>().p, c.inputs[0].as<T>(), c.outputs[0].as<T>());
    // Planes are independent: each is a window of its own.
    Window plane = w;
    plane.batch = plane.channels = 1;
    int64_t in = 1, out = 1;
    for (size_t i = 0; i < w.rank; ++i) in *= w.in[i], out *= w.out[i];
    kernels::parallel_for(c.threads, w.batch * w.channels, [&](int64_t i) {
      pool(plane, c.attrs<LpPoolAttrs>().p, c.inputs[0].as<T>() + i * in, c.outputs[0].as<T>() + i * out);
    });
  });
}

}  // namespace

extern const OpDef op_lp_pool = {
    .name = "LpPool",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
