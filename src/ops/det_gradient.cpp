// DetGradient(X, dY): the matrix of cofactors of X, times dY. Where X has an inverse, cofactors are the
// determinant times its transpose; otherwise they are the determinants of what is left without a row and a
// column.
#include <algorithm>

#include "kernels/parallel.h"
#include "ops/elimination.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGradient = 1;

void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  c.expect_rank(kX, 2, InferContext::kMaxRank);
  if (!c.ranked(kX)) return c.set_unranked_output(0, c.type(kX));
  const auto dims = c.dims(kX);
  unify(c, dims[dims.size() - 1], dims[dims.size() - 2]);
  c.expect_rank(kGradient, dims.size() - 2, dims.size() - 2);
  for (size_t i = 0; c.ranked(kGradient) && i + 2 < dims.size(); ++i) unify(c, dims[i], c.dims(kGradient)[i]);
  c.set_output(0, c.type(kX), dims);
}

// Of each thread: the matrix, what is eliminated, what becomes the inverse.
const void* select(SelectContext& c) {
  if (c.ranked(kX)) c.scratch(Dim(c.threads) * c.dims(kX).back() * c.dims(kX).back() * Dim(3 * 8));
  return nullptr;
}

double minor_of(const double* x, int64_t n, int64_t row, int64_t column, double* work) {
  double* to = work;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t k = 0; k < n && r != row; ++k) {
      if (k != column) *to++ = x[r * n + k];
    }
  }
  return determinant_of(work, n - 1);
}

// Writes the cofactors to y.
void cofactors(const double* x, int64_t n, double* work, double* y) {
  std::copy_n(x, n * n, work);
  const std::optional<double> determinant = invert(work, y, n);
  if (determinant && *determinant != 0) {
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t k = 0; k < r; ++k) std::swap(y[r * n + k], y[k * n + r]);
    }
    for (int64_t i = 0; i < n * n; ++i) y[i] *= *determinant;
    return;
  }
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t k = 0; k < n; ++k) y[r * n + k] = ((r + k) % 2 == 0 ? 1 : -1) * minor_of(x, n, r, k, work);
  }
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[kX], &dx = c.outputs[0];
  if (dx.elements() == 0) return;
  const int64_t n = x.dims.back(), count = x.elements() / (n * n);
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    double* matrix = reinterpret_cast<double*>(c.scratch) + thread * 3 * n * n;
    double *work = matrix + n * n, *result = work + n * n;
    for (int64_t i = count * thread / c.threads; i < count * (thread + 1) / c.threads; ++i) {
      read_floats(x, i * n * n, n * n, matrix);
      cofactors(matrix, n, work, result);
      double gradient = 0;
      read_floats(c.inputs[kGradient], i, 1, &gradient);
      for (int64_t k = 0; k < n * n; ++k) result[k] *= gradient;
      write_floats(dx, i * n * n, n * n, result);
    }
  });
}

}  // namespace

extern const OpDef op_det_gradient = {
    .domain = kPlimsollDomain,
    .name = "DetGradient",
    .inputs = {2, 2},
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
