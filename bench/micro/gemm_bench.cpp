// Our GEMM against oneDNN's sgemm.
#include <oneapi/dnnl/dnnl.h>

#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/strassen.h"
#include "support.h"

namespace plimsoll {
namespace {

using kernels::GemmEpilogue;
using kernels::GemmShape;

using micro::Buffer;
using micro::floats;

template <typename F>
void measure(benchmark::State& state, GemmShape s, F&& call) {
  micro::measure_arithmetic(
      state, 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n), call);
}

void packed(benchmark::State& state, GemmShape s, const GemmEpilogue<>& epilogue) {
  const int threads = 1;
  const Buffer a(floats(s.m * s.k)), b(floats(s.k * s.n)), c(floats(s.m * s.n));
  const Buffer panels(kernels::packed_b_bytes(s.k, s.n));
  const Buffer scratch(kernels::gemm_scratch_bytes(s, s.k, 1, threads));
  kernels::pack_b(s.k, s.n, {b.get(), s.n, 1}, panels.get());
  measure(state, s, [&] {
    kernels::gemm_packed(s, {a.get(), s.k, 1}, panels.get(), {c.get(), s.n}, epilogue, scratch.get(),
                         threads);
  });
}

void dynamic(benchmark::State& state, GemmShape s, bool transposed_b) {
  const Buffer a(floats(s.m * s.k)), b(floats(s.k * s.n)), c(floats(s.m * s.n));
  const Buffer scratch(kernels::gemm_dynamic_scratch_bytes(s, s.k, 1, 1));
  const kernels::GemmRight right{b.get(), transposed_b ? 1 : s.n, transposed_b ? s.k : 1};
  measure(state, s, [&] {
    kernels::gemm(s, {a.get(), s.k, 1}, right, {c.get(), s.n}, GemmEpilogue<>(), scratch.get(), 1);
  });
}

// Counted as what it replaces: its share may be above 1.
void by_strassen(benchmark::State& state, GemmShape s) {
  const Buffer a(floats(s.m * s.k)), b(floats(s.k * s.n)), c(floats(s.m * s.n));
  const Buffer panels(kernels::packed_b_bytes(s.k, s.n));
  const Buffer scratch(kernels::strassen_scratch_bytes(s, s.k, 1));
  kernels::pack_b(s.k, s.n, {b.get(), s.n, 1}, panels.get());
  measure(state, s, [&] {
    kernels::strassen(s, {a.get(), s.k, 1}, panels.get(), {c.get(), s.n}, {}, scratch.get(), 1);
  });
}

void onednn(benchmark::State& state, GemmShape s, bool transposed_b) {
  const Buffer a(floats(s.m * s.k)), b(floats(s.k * s.n)), c(floats(s.m * s.n));
  measure(state, s, [&] {
    dnnl_sgemm('N', transposed_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a.get(), s.k, b.get(),
               transposed_b ? s.k : s.n, 0.0f, c.get(), s.n);
  });
}

std::string name(const char* what, GemmShape s) {
  return std::string(what) + "/" + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" +
         std::to_string(s.n);
}

const bool kRegistered = [] {
  const auto add = [](const std::string& label, auto f) {
    benchmark::RegisterBenchmark(label.c_str(), f)->MinTime(0.2);
  };
  for (const GemmShape s : std::vector<GemmShape>{
           {128, 768, 768},  {128, 768, 3072}, {128, 3072, 768}, {197, 768, 768},  {197, 768, 3072},
           {197, 3072, 768}, {128, 384, 384},  {128, 384, 1536}, {128, 1536, 384}, {49, 768, 768},
           {49, 512, 2048},  {49, 2048, 512},  {3136, 64, 256},  {3136, 256, 64},  {784, 512, 128},
           {3136, 16, 72},   {784, 40, 120},   {196, 672, 112},  {1, 768, 3072},   {1, 2048, 1000},
           {2, 768, 768},    {4, 768, 3072},   {8, 768, 3072},   {512, 512, 512}}) {
    add(name("gemm/packed", s), [s](benchmark::State& state) { packed(state, s, {}); });
    add(name("gemm/onednn", s), [s](benchmark::State& state) { onednn(state, s, false); });
  }
  for (const GemmShape s : {GemmShape{1024, 1024, 1024}, {2048, 2048, 2048}}) {
    add(name("gemm/packed", s), [s](benchmark::State& state) { packed(state, s, {}); });
    add(name("gemm/strassen", s), [s](benchmark::State& state) { by_strassen(state, s); });
  }
  for (const GemmShape s :
       std::vector<GemmShape>{{128, 64, 128}, {197, 64, 197}, {512, 64, 512}, {128, 32, 128}}) {
    for (const bool transposed : {false, true}) {
      const std::string suffix = transposed ? "_bt" : "";
      add(name(("gemm/dynamic" + suffix).c_str(), s),
          [=](benchmark::State& state) { dynamic(state, s, transposed); });
      add(name(("gemm/onednn" + suffix).c_str(), s),
          [=](benchmark::State& state) { onednn(state, s, transposed); });
    }
  }
  using Kind = kernels::ActivationKind;
  for (const auto& [label, kind] :
       std::vector<std::pair<const char*, Kind>>{{"gemm/relu", Kind::kRelu},
                                                 {"gemm/gelu", Kind::kGelu},
                                                 {"gemm/silu", Kind::kSilu},
                                                 {"gemm/tanh", Kind::kTanh},
                                                 {"gemm/hardswish", Kind::kHardSwish}}) {
    for (const GemmShape s : std::vector<GemmShape>{{128, 768, 3072}, {3136, 64, 256}}) {
      GemmEpilogue epilogue;
      epilogue.activation.kind = kind;
      add(name(label, s), [s, epilogue](benchmark::State& state) { packed(state, s, epilogue); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll
