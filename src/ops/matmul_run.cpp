#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/strassen.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

// Gemm's C may be a scalar, a row, a column or a matrix: element (i, j) is at i * row + j * col.
struct BiasStrides {
  int64_t row = 0, col = 0;
};
BiasStrides bias_strides(const TensorView& bias) {
  const int64_t cols = bias.rank() == 0 ? 1 : bias.dims[bias.rank() - 1];
  const int64_t rows = bias.rank() < 2 ? 1 : bias.dims[bias.rank() - 2];
  return {rows == 1 ? 0 : cols, cols == 1 ? 0 : 1};
}

template <typename T>
void run_gemm(const RunContext& c, const MatMulAttrs& attrs, const MatMulChoice& choice) {
  const MatMulGeometry& g = choice.geometry;
  const TensorView& b = c.inputs[kMatMulB];
  kernels::GemmEpilogue<T> epilogue;
  epilogue.alpha = attrs.alpha;
  epilogue.activation = attrs.activation;
  const T* addend = c.has_input(kMatMulAddend) ? c.inputs[kMatMulAddend].as<T>() : nullptr;
  if (c.has_input(kMatMulBias)) {
    const T* bias = c.inputs[kMatMulBias].as<T>();
    const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
    if (strides.row == 0 && (strides.col == 1 || g.n == 1) && attrs.beta == 1) {
      epilogue.bias = bias;
    } else {
      T* y = c.outputs[0].as<T>();
      for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < g.n; ++j) y[i * g.y_row + j] = bias[i * strides.row + j * strides.col];
      }
      addend = y;
      epilogue.beta = attrs.beta;
    }
  }
  auto one = [&](int64_t batch, std::byte* scratch, int threads) {
    const MatMulOffsets at = offsets_of(g, batch);
    kernels::GemmEpilogue<T> own = epilogue;
    if (addend != nullptr) own.addend = addend + at.y, own.addend_stride = g.y_row;
    const kernels::GemmShape shape{g.m, g.k, g.n};
    const kernels::GemmLeft<T> left{c.inputs[kMatMulA].as<T>() + at.a, g.a_row, g.a_col};
    const kernels::GemmOutput<T> out{c.outputs[0].as<T>() + at.y, g.y_row};
    if constexpr (std::is_same_v<T, float>) {
      if (choice.strassen) return kernels::strassen(shape, left, b.data, out, own, scratch, threads);
    }
    if (choice.packed) {
      kernels::gemm_packed_as<T>(shape, left, b.data, out, own, scratch, threads);
    } else {
      kernels::gemm_as<T>(shape, left, {b.as<T>() + at.b, g.b_row, g.b_col}, out, own, scratch, threads);
    }
  };
  if (choice.tasks == 1) {
    for (int64_t batch = 0; batch < g.batches; ++batch) one(batch, c.scratch, c.threads);
    return;
  }
  kernels::parallel_for(c.threads, choice.tasks, [&](int64_t task) {
    const int64_t begin = g.batches * task / choice.tasks, end = g.batches * (task + 1) / choice.tasks;
    for (int64_t batch = begin; batch < end; ++batch) one(batch, c.scratch + task * choice.task_scratch, 1);
  });
}

// Integers wrap around.
template <typename T>
void run_reference(const RunContext& c, const MatMulAttrs& attrs, const MatMulGeometry& g) {
  for (int64_t batch = 0; batch < g.batches; ++batch) {
    const MatMulOffsets at = offsets_of(g, batch);
    const T* a = c.inputs[kMatMulA].as<T>() + at.a;
    const T* b = c.inputs[kMatMulB].as<T>() + at.b;
    T* y = c.outputs[0].as<T>() + at.y;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        uint64_t sum = 0;
        for (int64_t k = 0; k < g.k; ++k)
          sum += static_cast<uint64_t>(a[i * g.a_row + k * g.a_col]) *
                 static_cast<uint64_t>(b[k * g.b_row + j * g.b_col]);
        const int64_t index = i * g.y_row + j;
        const double product = static_cast<double>(attrs.alpha) * static_cast<double>(static_cast<T>(sum));
        if (c.has_input(kMatMulBias)) {
          const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
          const T bias = c.inputs[kMatMulBias].as<T>()[i * strides.row + j * strides.col];
          y[index] = static_cast<T>(product + static_cast<double>(attrs.beta) * static_cast<double>(bias));
        } else {
          y[index] = attrs.alpha == 1 ? static_cast<T>(sum) : static_cast<T>(product);
        }
      }
    }
  }
}

}  // namespace

void run_matmul(const RunContext& c) {
  const auto& attrs = c.attrs<MatMulAttrs>();
  const auto& choice = c.choice<MatMulChoice>();
  if (c.outputs[0].elements() == 0) return;
  const ElementType type = c.inputs[kMatMulA].type;
  if (choice.kernel == MatMulKernel::kRounded) {
    run_rounded_matmul(c, attrs, choice);
  } else if (choice.kernel == MatMulKernel::kGemm) {
    visit_float(type, [&](auto tag) { run_gemm<typename decltype(tag)::type>(c, attrs, choice); });
  } else {
    visit_integer(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (sizeof(T) >= 4) run_reference<T>(c, attrs, choice.geometry);
    });
  }
}

}  // namespace plimsoll
