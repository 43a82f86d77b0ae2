// Counts the heap calls of this thread while a HeapWatch exists. Include in one file of a test binary:
// it replaces malloc for the whole program, unless a sanitizer has done so: then nothing is counted.
#pragma once

#include <execinfo.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "support/sanitized.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace plimsoll::heap {

struct State {
  bool watching = false;
  long calls = 0;
  long fail_at = 0;  // 0: never; n: the n-th call returns null
  void* first_stack[16];
  int first_depth = 0;
};
inline thread_local State state;

// True if this call must fail.
inline bool note() {
  if (!state.watching) return false;
  state.watching = false;
  if (state.calls == 0) state.first_depth = backtrace(state.first_stack, 16);
  state.watching = true;
  return ++state.calls == state.fail_at;
}

class Watch {
 public:
  explicit Watch(long fail_at = 0) {
    void* warm_up[1];
    backtrace(warm_up, 1);  // loads what it needs before we count
    state = {};
    state.fail_at = fail_at;
    state.watching = true;
  }
  ~Watch() { state.watching = false; }
  long stop() {
    state.watching = false;
    return state.calls;
  }
  // Who made the first call.
  std::string first_caller() const {
    std::string text;
    char** names = backtrace_symbols(state.first_stack, state.first_depth);
    for (int i = 0; i < state.first_depth; ++i) text += std::string(names[i]) + "\n";
    std::free(names);
    return text;
  }
};

}  // namespace plimsoll::heap

#if !PLIMSOLL_SANITIZED
extern "C" {
void* malloc(size_t size) noexcept {
  return plimsoll::heap::note() ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  return plimsoll::heap::note() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) noexcept {
  return plimsoll::heap::note() ? nullptr : __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  return plimsoll::heap::note() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return plimsoll::heap::note() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) noexcept {
  *block = plimsoll::heap::note() ? nullptr : __libc_memalign(alignment, size);
  return *block == nullptr ? 12 : 0;
}
}
#endif
