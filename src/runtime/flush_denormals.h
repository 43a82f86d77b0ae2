// Denormal numbers as zeros, on every thread of a run.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

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
  static constexpr unsigned kBits = 0x8040;
  static unsigned get() {
#if defined(__SSE2__)
    return _mm_getcsr();
#else
    return 0;
#endif
  }
  static void set(unsigned bits) {
#if defined(__SSE2__)
    _mm_setcsr(bits);
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
