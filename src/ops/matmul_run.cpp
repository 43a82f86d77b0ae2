#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/activation_attr.h"
#include "ops/matmul_common.h"

namespace plimsoll {
namespace {

struct Offsets {
  int64_t a = 0, b = 0, y = 0;
};

Offsets offsets_of(const MatMulGeometry& g, int64_t batch) {
  Offsets result;
  for (size_t i = g.batch.size(); i-- > 0;) {
    const int64_t at = batch % g.batch[i];
    batch /= g.batch[i];
    result.a += at * g.a_batch[i], result.b += at * g.b_batch[i], result.y += at * g.y_batch[i];
  }
  return result;
}

// Gemm's C may be a scalar, a row, a column or a matrix: element (i, j) is at i * row + j * col.
struct BiasStrides {
  int64_t row = 0, col = 0;
};
BiasStrides bias_strides(const TensorView& bias) {
  const int64_t cols = bias.rank() == 0 ? 1 : bias.dims[bias.rank() - 1];
  const int64_t rows = bias.rank() < 2 ? 1 : bias.dims[bias.rank() - 2];
  return {rows == 1 ? 0 : cols, cols == 1 ? 0 : 1};
}

void run_float(const RunContext& c, const MatMulAttrs& attrs, const MatMulChoice& choice) {
  const MatMulGeometry& g = choice.geometry;
  const TensorView& b = c.inputs[kMatMulB];
  kernels::GemmEpilogue epilogue;
  epilogue.alpha = attrs.alpha;
  epilogue.activation = attrs.activation;
  const float* addend = c.has_input(kMatMulAddend) ? c.inputs[kMatMulAddend].as<float>() : nullptr;
  if (c.has_input(kMatMulBias)) {
    const float* bias = c.inputs[kMatMulBias].as<float>();
    const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
    if (strides.row == 0 && (strides.col == 1 || g.n == 1) && attrs.beta == 1) {
      epilogue.bias = bias;
    } else {
      float* y = c.outputs[0].as<float>();
      for (int64_t i = 0; i < g.m; ++i) {
        for (int64_t j = 0; j < g.n; ++j) y[i * g.y_row + j] = bias[i * strides.row + j * strides.col];
      }
      addend = y;
      epilogue.beta = attrs.beta;
    }
  }
  auto one = [&](int64_t batch, std::byte* scratch, int threads) {
    const Offsets at = offsets_of(g, batch);
    kernels::GemmEpilogue own = epilogue;
    if (addend != nullptr) own.addend = addend + at.y, own.addend_stride = g.y_row;
    const kernels::GemmShape shape{g.m, g.k, g.n};
    const kernels::GemmLeft left{c.inputs[kMatMulA].as<float>() + at.a, g.a_row, g.a_col};
    const kernels::GemmOutput out{c.outputs[0].as<float>() + at.y, g.y_row};
    if (choice.packed) {
      kernels::gemm_packed(shape, left, b.data, out, own, scratch, threads);
    } else {
      kernels::gemm(shape, left, {b.as<float>() + at.b, g.b_row, g.b_col}, out, own, scratch, threads);
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

// Any other type: sums in double, or in the integer itself with wrap-around.
template <typename T>
void run_reference(const RunContext& c, const MatMulAttrs& attrs, const MatMulGeometry& g) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  auto widen = [](T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<Wide>(x);
    if constexpr (std::is_same_v<T, double>) return x;
    if constexpr (!std::is_arithmetic_v<T>) return static_cast<Wide>(static_cast<float>(x));
  };
  auto narrow = [](double x) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(x);
    if constexpr (!std::is_arithmetic_v<T>) return T(static_cast<float>(x));
  };
  for (int64_t batch = 0; batch < g.batches; ++batch) {
    const Offsets at = offsets_of(g, batch);
    const T* a = c.inputs[kMatMulA].as<T>() + at.a;
    const T* b = c.inputs[kMatMulB].as<T>() + at.b;
    T* y = c.outputs[0].as<T>() + at.y;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        Wide sum = 0;
        for (int64_t k = 0; k < g.k; ++k)
          sum += widen(a[i * g.a_row + k * g.a_col]) * widen(b[k * g.b_row + j * g.b_col]);
        const int64_t index = i * g.y_row + j;
        if constexpr (std::is_integral_v<T>) {
          if (c.has_input(kMatMulBias)) {
            const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
            const T bias = c.inputs[kMatMulBias].as<T>()[i * strides.row + j * strides.col];
            y[index] =
                static_cast<T>(static_cast<double>(attrs.alpha) * static_cast<double>(static_cast<T>(sum)) +
                               static_cast<double>(attrs.beta) * static_cast<double>(bias));
          } else {
            y[index] = attrs.alpha == 1 ? static_cast<T>(sum)
                                        : static_cast<T>(static_cast<double>(attrs.alpha) *
                                                         static_cast<double>(static_cast<T>(sum)));
          }
        } else {
          double value = static_cast<double>(sum) * static_cast<double>(attrs.alpha);
          if (c.has_input(kMatMulBias)) {
            const BiasStrides strides = bias_strides(c.inputs[kMatMulBias]);
            value += static_cast<double>(attrs.beta) *
                     widen(c.inputs[kMatMulBias].as<T>()[i * strides.row + j * strides.col]);
          }
          if (c.has_input(kMatMulAddend)) value += widen(c.inputs[kMatMulAddend].as<T>()[at.y + index]);
          if (attrs.activation.kind != kernels::ActivationKind::kNone)
            value = static_cast<double>(apply_activation(attrs.activation, static_cast<float>(value)));
          y[index] = narrow(value);
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
  if (choice.kernel == MatMulKernel::kGemm) return run_float(c, attrs, choice);
  switch (c.inputs[kMatMulA].type) {
    case ElementType::kDouble:
      return run_reference<double>(c, attrs, choice.geometry);
    case ElementType::kFloat16:
      return run_reference<Float16>(c, attrs, choice.geometry);
    case ElementType::kBFloat16:
      return run_reference<BFloat16>(c, attrs, choice.geometry);
    case ElementType::kInt32:
      return run_reference<int32_t>(c, attrs, choice.geometry);
    case ElementType::kUint32:
      return run_reference<uint32_t>(c, attrs, choice.geometry);
    case ElementType::kUint64:
      return run_reference<uint64_t>(c, attrs, choice.geometry);
    default:
      return run_reference<int64_t>(c, attrs, choice.geometry);
  }
}

}  // namespace plimsoll
