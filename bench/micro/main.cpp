// The instruction set is the best one, or the one that PLIMSOLL_BENCH_ISA names (AVX3, AVX2, SSE4; give
// oneDNN the same with DNNL_MAX_CPU_ISA). Run with OMP_NUM_THREADS=1.
#include <benchmark/benchmark.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>

namespace {

void choose_target(const char* name) {
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (std::strcmp(hwy::TargetName(target), name) == 0) hwy::SetSupportedTargetsForTest(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* name = std::getenv("PLIMSOLL_BENCH_ISA")) choose_target(name);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
