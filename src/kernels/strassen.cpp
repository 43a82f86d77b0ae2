#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/strassen.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <atomic>

#include "kernels/parallel.h"
#include "kernels/strassen-inl.h"
#include "kernels/strassen.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::kernels::HWY_NAMESPACE {
namespace {

bool strassen_pays_for(GemmShape shape) {
  return pays(shape);
}

int64_t strassen_elements(GemmShape shape, int64_t a_row_stride, int threads) {
  const StrassenCut cut = cut_strassen(shape, a_row_stride, threads);
  return cut.tasks_m * cut.tasks_n * cut.task_elements();
}

int64_t strassen_most_elements(int64_t k, int threads) {
  return most_elements(k, threads);
}

// The columns behind the last pair of panels.
void multiply_rest(const GemmShape& shape, int64_t first, const GemmLeft<>& a, const float* packed,
                   GemmOutput<> c, GemmEpilogue<> e, int threads) {
  c.data += first;
  if (e.bias != nullptr) e.bias += first;
  if (e.addend != nullptr) e.addend += first;
  gemm_packed({shape.m, shape.k, shape.n - first}, a, packed + first * shape.k, c, e, nullptr, threads);
}

// What is not finite would spread from a row to its partner, which may be another sample's. Times zero it is
// NaN, and so is every sum with it.
bool all_finite(const GemmShape& shape, const GemmLeft<>& a, int threads) {
  const FloatTag d;
  std::atomic<bool> finite = true;
  parallel_for(threads, threads, [&](int64_t part) HWY_ATTR {
    FloatVec sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (int64_t row = shape.m * part / threads; row < shape.m * (part + 1) / threads; ++row) {
      const float* from = a.data + row * a.row_stride;
      int64_t k = 0;
      for (; k + 2 * kFloatLanes <= shape.k; k += 2 * kFloatLanes) {
        sum0 = hn::MulAdd(hn::LoadU(d, from + k), hn::Zero(d), sum0);
        sum1 = hn::MulAdd(hn::LoadU(d, from + k + kFloatLanes), hn::Zero(d), sum1);
      }
      for (; k < shape.k; k += kFloatLanes)
        sum0 = hn::MulAdd(load_lanes(from + k, shape.k - k), hn::Zero(d), sum0);
    }
    if (!hn::AllTrue(d, hn::Eq(hn::Add(sum0, sum1), hn::Zero(d)))) finite = false;
  });
  return finite;
}

void multiply_by_strassen(const GemmShape& shape, const GemmLeft<>& a, const void* packed,
                          const GemmOutput<>& c, const GemmEpilogue<>& e, float* scratch, int threads) {
  const Job<float> job = plan_job<float>(shape, a, packed, c, e, false, threads);
  if (job.detour || !all_finite(shape, a, threads))
    return gemm_packed(shape, a, packed, c, e, nullptr, threads);
  const StrassenCut cut = cut_strassen(shape, a.row_stride, threads);
  const int64_t units = cut.pairs * cut.tiles;
  parallel_for(threads, cut.tasks_m * cut.tasks_n, [&](int64_t task) {
    const int64_t m = task % cut.tasks_m, n = task / cut.tasks_m;
    for (int64_t block = cut.blocks * m / cut.tasks_m; block < cut.blocks * (m + 1) / cut.tasks_m; ++block)
      multiply_block(job, cut, block, units * n / cut.tasks_n, units * (n + 1) / cut.tasks_n,
                     scratch + task * cut.task_elements());
  });
  const int64_t first = cut.pairs * 2 * kPanelOf<float>;
  if (first < shape.n) multiply_rest(shape, first, a, job.b, c, e, threads);
}

}  // namespace
}  // namespace plimsoll::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::kernels {

HWY_EXPORT(strassen_pays_for);
HWY_EXPORT(strassen_elements);
HWY_EXPORT(strassen_most_elements);
HWY_EXPORT(multiply_by_strassen);

bool strassen_pays(GemmShape shape) {
  return HWY_DYNAMIC_DISPATCH(strassen_pays_for)(shape);
}

size_t strassen_scratch_bytes(GemmShape shape, int64_t a_row_stride, int threads) {
  return static_cast<size_t>(HWY_DYNAMIC_DISPATCH(strassen_elements)(shape, a_row_stride, threads)) *
         sizeof(float);
}

size_t strassen_most_scratch_bytes(int64_t k, int threads) {
  return static_cast<size_t>(HWY_DYNAMIC_DISPATCH(strassen_most_elements)(k, threads)) * sizeof(float);
}

void strassen(GemmShape shape, GemmLeft<> a, const void* packed_b, GemmOutput<> c,
              const GemmEpilogue<>& epilogue, void* scratch, int threads) {
  HWY_DYNAMIC_DISPATCH(multiply_by_strassen)
  (shape, a, packed_b, c, epilogue, static_cast<float*>(scratch), threads);
}

}  // namespace plimsoll::kernels
#endif  // HWY_ONCE
