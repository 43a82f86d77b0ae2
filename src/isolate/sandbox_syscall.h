// System calls for the child between clone3 and exec, which shares the caller's memory: no errno, no libc.
#pragma once

#include <cstdint>
#include <type_traits>

namespace plimsoll::sandbox {

// The kernel's own result: negative errno on failure.
inline long raw_syscall6(long number, long a, long b, long c, long d, long e, long f) noexcept {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "the sandbox knows x86-64 and aarch64"
#endif
}

template <typename T>
long raw_argument(T value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

template <typename A = long, typename B = long, typename C = long, typename D = long, typename E = long,
          typename F = long>
long raw_syscall(long number, A a = 0, B b = 0, C c = 0, D d = 0, E e = 0, F f = 0) noexcept {
  return raw_syscall6(number, raw_argument(a), raw_argument(b), raw_argument(c), raw_argument(d),
                      raw_argument(e), raw_argument(f));
}

}  // namespace plimsoll::sandbox
