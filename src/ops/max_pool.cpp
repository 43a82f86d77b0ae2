#include "ops/max_pool.h"

#include <limits>

#include "ops/layout.h"
#include "ops/pool_lines.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolAttrs>();
  read_pool(c, *a);
  a->column_major = c.integer("storage_order", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  infer_pool(c, kFloatTypes | types(ElementType::kInt8, ElementType::kUint8));
}

// Indices count the elements of (N, C, spatial...) whatever the layout; spatial ones in column-major order if
// storage_order says so.
SpatialStrides index_strides(const Window& w, bool column_major) {
  SpatialStrides s = strides_of(w.rank, w.channels, w.in, false);
  if (!column_major) return s;
  int64_t stride = 1;
  for (size_t i = 0; i < w.rank; ++i) {
    s.spatial[i] = stride;
    stride *= w.in[i];
  }
  return s;
}

template <typename C>
constexpr C kBelowAll = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                             : std::numeric_limits<C>::lowest();

// A window without an element inside gives the lowest finite number.
template <typename T>
T lowest() {
  if constexpr (std::is_same_v<T, Float16>) {
    return T(-65504.0f);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return T(-0x1.fep127f);
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

template <typename T>
struct Largest {
  using C = ComputeType<T>;
  T* y;
  C best[kPoolBlock];

  void start(int64_t count) { std::fill_n(best, count, kBelowAll<C>); }
  void take(const PoolTaps<C>& t) {
    if (t.step == 1) {  // a loop of vectors
      for (int64_t i = t.first; i < t.last; ++i) best[i] = larger(best[i], t.x[i - t.first]);
    } else {
      for (int64_t i = t.first; i < t.last; ++i) best[i] = larger(best[i], t.x[(i - t.first) * t.step]);
    }
  }
  static C larger(C best, C x) {
    if constexpr (std::is_integral_v<C>) return std::max(best, x);
    return (x > best) | (x != x) ? x : best;  // a NaN wins
  }
  void finish(int64_t i, const PoolCounts& counts, int64_t to) {
    y[to] = counts.inside > 0 ? static_cast<T>(best[i]) : lowest<T>();
  }
};

template <typename T>
struct LargestWithIndex : Largest<T> {
  using C = ComputeType<T>;
  int64_t* indices;
  int64_t number[kPoolBlock];

  void start(int64_t count) {
    Largest<T>::start(count);
    std::fill_n(number, count, int64_t{-1});
  }
  void take(const PoolTaps<C>& t) {
    for (int64_t i = t.first; i < t.last; ++i) {
      const C x = t.x[(i - t.first) * t.step];
      const bool wins = (number[i] < 0) | (x > this->best[i]);
      this->best[i] = wins ? x : this->best[i];
      number[i] = wins ? t.number + (i - t.first) * t.number_step : number[i];
    }
  }
  void finish(int64_t i, const PoolCounts& counts, int64_t to) {
    Largest<T>::finish(i, counts, to);
    indices[to] = number[i];
  }
};

template <typename F>
void visit_pooled(ElementType type, F&& f) {
  if (type == ElementType::kInt8) return f(TypeTag<int8_t>{});
  if (type == ElementType::kUint8) return f(TypeTag<uint8_t>{});
  visit_float(type, f);
}

void run(const RunContext& c) {
  if (!c.has_output(1)) return run_max_pool(c);
  const Window w = pool_window(c);
  visit_pooled(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SpatialStrides numbers = index_strides(w, c.attrs<PoolAttrs>().column_major);
    const LargestWithIndex<T> pool{{c.outputs[0].as<T>(), {}}, c.outputs[1].as<int64_t>(), {}};
    PoolLines<T, LargestWithIndex<T>>(w, numbers, c.inputs[0].as<T>(), pool).run(c.threads);
  });
}

void gradient(GradientContext& c) {
  gradient_pool(c, "max");
}

}  // namespace

void run_max_pool(const RunContext& c) {
  const Window w = pool_window(c);
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (const auto shape = plane_pool(x, w)) {
    return visit_float(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels::max_pool(*shape, x.as<T>(), y.as<T>(), c.threads);
    });
  }
  visit_pooled(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    pool_lines(w, x.as<T>(), Largest<T>{y.as<T>(), {}}, c.threads);
  });
}

extern const OpDef op_max_pool = {
    .name = "MaxPool",
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout_windowed,
    .region = region_pool,
    .channels_last = true,
    .gradient = gradient,
};

}  // namespace plimsoll
