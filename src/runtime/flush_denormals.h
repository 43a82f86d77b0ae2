// Denormal numbers as zeros, on every thread of a run.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <cstdint>

#include "kernels/parallel.h"

namespace plimsoll {

// While it lives, if `on`: the processor's flush-to-zero and denormals-are-zero. Afterwards as before.
class FlushDenormals {
 public:
  FlushDenormals(bool on, int threads) : threads_(on ? threads : 0) {
    if (on) for_each_thread([] { set(get() | kBits); });
  }
  FlushDenormals(const FlushDenormals&) = delete;
  ~FlushDenormals() {
    if (threads_ > 0) for_each_thread([] { set(get() & ~kBits); });
  }

 private:
#if defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kBits = Register{1} << 24;  // one bit for operands and results
#else
  using Register = unsigned;
  static constexpr Register kBits = 0x8040;
#endif
  static Register get() {
#if defined(__SSE2__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    Register bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
#else
    return 0;
#endif
  }
  static void set(Register bits) {
#if defined(__SSE2__)
    _mm_setcsr(bits);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(bits));
#else
    (void)bits;
#endif
  }
  template <typename F>
  void for_each_thread(F&& f) {
    kernels::parallel_for(threads_, threads_, [&](int64_t) { f(); });  // one task for each thread
  }

  int threads_;
};

}  // namespace plimsoll
