// What Highway's headers want to find when they choose between targets. Its own library has the same
// functions, and measures the resolution of the clock for four milliseconds when it is loaded: as much as
// opening a compiled model takes.
#include <hwy/highway.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {
namespace {

int64_t detected_targets() {
#if HWY_ARCH_X86
  __builtin_cpu_init();
  int64_t targets = 0;
  const auto add = [&](bool has, int64_t target) {
    if (has) targets |= target;
    return has;
  };
  const bool ssse3 = add(__builtin_cpu_supports("ssse3"), HWY_SSSE3);
  const bool sse4 = add(ssse3 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                            __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes"),
                        HWY_SSE4);
  const bool avx2 = add(sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                            __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt"),
                        HWY_AVX2);
  add(avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd"),
      HWY_AVX3);
  return targets;
#else
  return HWY_STATIC_TARGET;
#endif
}

std::atomic<int64_t>& narrowed() {
  static std::atomic<int64_t> targets{0};  // 0: not
  return targets;
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = detected_targets();
  const int64_t set = narrowed().load();
  return set != 0 ? set : detected;
}

void SetSupportedTargetsForTest(int64_t targets) {
  narrowed().store(targets);
  GetChosenTarget().DeInit();  // kernels choose anew
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

void Abort(const char* file, int line, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
