#include "ops/contraction.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace plimsoll {
namespace {

bool continues(const ContractionLoop& outer, const ContractionLoop& inner) {
  return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
         outer.o == inner.o * inner.size;
}

// How well a loop does as the innermost one.
int suitability(const ContractionLoop& l) {
  if (l.size < 4) return 0;
  if (l.o == 1 && l.a <= 1 && l.b <= 1) return 4;
  if (l.o == 0 && l.a <= 1 && l.b <= 1) return 3;
  return l.o <= 1 ? 2 : 1;
}

}  // namespace

size_t arrange_loops(std::span<ContractionLoop> loops) {
  auto* end = std::remove_if(loops.data(), loops.data() + loops.size(),
                             [](const ContractionLoop& l) { return l.size == 1; });
  std::sort(loops.data(), end, [](const ContractionLoop& x, const ContractionLoop& y) {
    if ((x.o == 0) != (y.o == 0)) return y.o == 0;
    return x.o != y.o ? x.o > y.o : x.a + x.b > y.a + y.b;
  });
  size_t count = 0;
  for (auto* l = loops.data(); l != end; ++l) {
    if (count > 0 && continues(loops[count - 1], *l)) {
      const int64_t size = loops[count - 1].size * l->size;
      loops[count - 1] = *l;
      loops[count - 1].size = size;
    } else {
      loops[count++] = *l;
    }
  }
  if (count == 0) return 0;
  size_t best = count - 1;
  for (size_t i = count - 1; i-- > 0;) {
    if (suitability(loops[i]) > suitability(loops[best])) best = i;
  }
  std::rotate(loops.data() + best, loops.data() + best + 1, loops.data() + count);
  return count;
}

namespace {

template <typename C>
using Sum = std::conditional_t<std::is_same_v<C, float>, double, C>;

template <typename C>
C multiply(C x, C y) {
  if constexpr (std::is_same_v<C, uint16_t>) {
    return static_cast<C>(static_cast<uint32_t>(x) * y);  // does not promote to a signed product
  } else {
    return static_cast<C>(x * y);
  }
}

template <typename C>
void innermost(const ContractionLoop& l, const C* a, const C* b, C* o) {
  const int64_t n = l.size;
  if (l.o == 0) {
    Sum<C> sum = 0;
    if (b == nullptr && l.a == 1) {
      for (int64_t i = 0; i < n; ++i) sum = static_cast<Sum<C>>(sum + a[i]);
    } else if (b == nullptr) {
      for (int64_t i = 0; i < n; ++i) sum = static_cast<Sum<C>>(sum + a[i * l.a]);
    } else if (l.a == 1 && l.b == 1) {
      for (int64_t i = 0; i < n; ++i) sum = static_cast<Sum<C>>(sum + multiply<C>(a[i], b[i]));
    } else {
      for (int64_t i = 0; i < n; ++i) sum = static_cast<Sum<C>>(sum + multiply<C>(a[i * l.a], b[i * l.b]));
    }
    *o = static_cast<C>(*o + static_cast<C>(sum));
  } else if (b == nullptr) {
    for (int64_t i = 0; i < n; ++i) o[i * l.o] = static_cast<C>(o[i * l.o] + a[i * l.a]);
  } else if (l.o == 1 && l.a == 0 && l.b == 1) {
    const C factor = *a;
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<C>(o[i] + multiply<C>(factor, b[i]));
  } else if (l.o == 1 && l.a == 1 && l.b == 0) {
    const C factor = *b;
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<C>(o[i] + multiply<C>(a[i], factor));
  } else if (l.o == 1 && l.a == 1 && l.b == 1) {
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<C>(o[i] + multiply<C>(a[i], b[i]));
  } else {
    for (int64_t i = 0; i < n; ++i)
      o[i * l.o] = static_cast<C>(o[i * l.o] + multiply<C>(a[i * l.a], b[i * l.b]));
  }
}

// All loops of `outer` around the innermost one.
template <typename C>
void nest(std::span<const ContractionLoop> outer, const ContractionLoop& inner, const C* a, const C* b,
          C* o) {
  std::array<int64_t, kMaxContractionLoops> at;
  std::fill_n(at.begin(), outer.size(), 0);
  for (;;) {
    innermost(inner, a, b, o);
    size_t i = outer.size();
    for (; i > 0; --i) {
      const ContractionLoop& l = outer[i - 1];
      a += l.a, o += l.o;
      if (b != nullptr) b += l.b;
      if (++at[i - 1] < l.size) break;
      at[i - 1] = 0;
      a -= l.size * l.a, o -= l.size * l.o;
      if (b != nullptr) b -= l.size * l.b;
    }
    if (i == 0) return;
  }
}

}  // namespace

template <typename C>
void contract(std::span<const ContractionLoop> loops, const C* a, const C* b, C* o, int threads) {
  for (const ContractionLoop& l : loops) {
    if (l.size == 0) return;
  }
  if (loops.empty()) return innermost({}, a, b, o);
  const ContractionLoop& inner = loops.back();
  const std::span<const ContractionLoop> outer = loops.first(loops.size() - 1);
  // Loops over the result are independent of each other.
  size_t parallel = 0;
  int64_t tasks = 1, work = 1;
  for (const ContractionLoop& l : loops) work *= l.size;
  while (parallel < outer.size() && outer[parallel].o != 0 && tasks < 64) tasks *= outer[parallel++].size;
  kernels::parallel_for(work < 32768 ? 1 : threads, tasks, [&](int64_t task) {
    const C *from_a = a, *from_b = b;
    C* to = o;
    for (size_t i = parallel; i-- > 0;) {
      const int64_t at = task % outer[i].size;
      task /= outer[i].size;
      from_a += at * outer[i].a, to += at * outer[i].o;
      if (b != nullptr) from_b += at * outer[i].b;
    }
    nest(outer.subspan(parallel), inner, from_a, from_b, to);
  });
}

template void contract(std::span<const ContractionLoop>, const float*, const float*, float*, int);
template void contract(std::span<const ContractionLoop>, const double*, const double*, double*, int);
template void contract(std::span<const ContractionLoop>, const uint8_t*, const uint8_t*, uint8_t*, int);
template void contract(std::span<const ContractionLoop>, const uint16_t*, const uint16_t*, uint16_t*, int);
template void contract(std::span<const ContractionLoop>, const uint32_t*, const uint32_t*, uint32_t*, int);
template void contract(std::span<const ContractionLoop>, const uint64_t*, const uint64_t*, uint64_t*, int);

}  // namespace plimsoll
