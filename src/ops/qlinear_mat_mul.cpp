#include "ops/qlinear_mat_mul.h"

#include <algorithm>
#include <cmath>

#include "kernels/parallel.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

constexpr size_t kAScale = 1, kBScale = 4, kYScale = 6, kYZero = 7;
constexpr ProductInputs kInputs = {.a = 0, .b = 3, .a_zero = 2, .b_zero = 5};
constexpr TypeSet kFloat8 = types(ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                  ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ);

struct QLinearMatMulChoice {
  IntegerProduct product;
  int64_t scales_at = 0;
};

}  // namespace

void infer_qlinear_mat_mul(InferContext& c) {
  const TypeSet allowed = c.opset() < 21 ? kByteTypes : kByteTypes | kFloat8;
  for (size_t i : {kInputs.a, kInputs.b, kYZero}) c.expect_type(i, allowed);
  for (size_t i : {kAScale, kBScale, kYScale})
    c.expect_type(i, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
  for (size_t i : {kYScale, kYZero}) {
    const Dim count = c.ranked(i) ? product(c.dims(i)) : Dim(1);
    if (count.is_constant() && count.value() != 1)
      c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
  }
  const auto dims = infer_product(c, kInputs);
  if (!dims) return c.set_unranked_output(0, c.type(kYZero));
  expect_per_row(c, kAScale, kInputs);
  expect_per_column(c, kBScale, kInputs);
  c.set_output(0, c.type(kYZero), *dims);
}

const void* select_qlinear_mat_mul(SelectContext& c) {
  auto* choice = c.make<QLinearMatMulChoice>();
  // Rows of several matrices are not merged where each has its scale, nor for products by the definition.
  const bool row_scales = c.ranked(kAScale) && !(product(c.dims(kAScale)) == Dim(1));
  const bool bytes = kByteTypes.contains(c.type(kInputs.a)) && kByteTypes.contains(c.type(kInputs.b)) &&
                     kByteTypes.contains(c.type(kYZero));
  choice->product = select_product(c, kInputs, bytes, row_scales);
  if (c.ranked(kInputs.b))
    choice->scales_at = c.scratch(c.rank(kInputs.b) > 1 ? c.dims(kInputs.b).back() * Dim(4) : Dim(4));
  return choice;
}

void pack_qlinear_mat_mul(const PackContext& c) {
  pack_product(c, kInputs);
}

namespace {

// Where the values of one matrix start, among those of all or of any.
int64_t first_of(const TensorView& view, int64_t matrix, int64_t count) {
  return view.elements() == count || view.elements() == 1 ? 0 : matrix * count;
}

// a_scale * b_scale / y_scale for every column.
void set_scales(const RunContext& c, const IntegerProduct& p, float a_scale, int64_t b_matrix,
                float* scales) {
  const TensorView& b = c.inputs[kBScale];
  const float y_scale = read_as_float(c.inputs[kYScale], 0);
  const int64_t first = first_of(b, b_matrix, p.n);
  for (int64_t i = 0; i < p.n; ++i)
    scales[i] = a_scale * read_as_float(b, b.elements() == 1 ? 0 : first + i) / y_scale;
}

kernels::IntGemmAddend addend_of(const RunContext& c, const IntegerProduct& p, int64_t batch) {
  const TensorView& z = c.inputs[kQMatMulZ];
  const Quantization from = read_quantization(c, kQMatMulZScale, kQMatMulZZero);
  const Quantization to = read_quantization(c, kQMatMulSumScale, kQMatMulSumZero);
  const bool is_row = z.elements() == p.n && c.outputs[0].elements() != p.n;
  kernels::IntGemmAddend addend;
  addend.data = z.data + (is_row ? 0 : batch * p.m * p.n);
  addend.row_stride = is_row ? 0 : p.n;
  addend.is_signed = z.type == ElementType::kInt8;
  addend.zero_point = from.zero, addend.scale = from.scale / to.scale;
  addend.own_scale = read_as_float(c.inputs[kYScale], 0) / to.scale, addend.sum_zero_point = to.zero;
  return addend;
}

kernels::IntGemmAddend next_row(kernels::IntGemmAddend addend) {
  if (addend.data != nullptr) addend.data = static_cast<const std::byte*>(addend.data) + addend.row_stride;
  return addend;
}

void run_bytes(const RunContext& c, const QLinearMatMulChoice& choice) {
  const IntegerProduct& p = choice.product;
  const ProductRun product(c, kInputs, p);
  const TensorView& a_scale = c.inputs[kAScale];
  const kernels::IntGemmResult type = result_type(c.outputs[0].type);
  float* scales = c.scratch_as<float>(choice.scales_at);
  const auto finish = [&](ProductStep& step) {
    step.finish.scales = scales;
    step.finish.zero_point = integer_at(c.inputs[kYZero].type, c.inputs[kYZero].data, 0);
    if (c.has_input(kQMatMulZ)) step.finish.addend = addend_of(c, p, step.batch);
    return c.outputs[0].as<uint8_t>() + step.batch * p.m * p.n;
  };
  if (product.may_share_batches() && a_scale.elements() == 1 && c.inputs[kBScale].elements() == 1) {
    set_scales(c, p, read_as_float(a_scale, 0), 0, scales);
    kernels::parallel_for(c.threads, c.threads, [&](int64_t task) {
      for (int64_t batch = p.batches * task / c.threads; batch < p.batches * (task + 1) / c.threads;
           ++batch) {
        ProductStep step = product.step(batch, task);
        product.multiply(step, finish(step), type);
      }
    });
    return;
  }
  for (int64_t batch = 0; batch < p.batches; ++batch) {
    ProductStep step = product.step(batch);
    uint8_t* y = finish(step);
    if (a_scale.elements() == 1) {
      set_scales(c, p, read_as_float(a_scale, 0), step.b_matrix, scales);
      product.multiply(step, y, type);
      continue;
    }
    for (int64_t row = 0; row < p.m; ++row) {
      set_scales(c, p, read_as_float(a_scale, first_of(a_scale, step.a_matrix, p.m) + row), step.b_matrix,
                 scales);
      if (row > 0) step.finish.addend = next_row(step.finish.addend);
      product.multiply_row(step, row, y + row * p.n, type);
    }
  }
}

// float8: by the definition.
void run_small_floats(const RunContext& c, const QLinearMatMulChoice& choice) {
  const IntegerProduct& p = choice.product;
  const TensorView &a = c.inputs[kInputs.a], &b = c.inputs[kInputs.b], &y = c.outputs[0];
  const auto value = [&](size_t input, int64_t matrix, int64_t count, int64_t i) {
    const TensorView& view = c.inputs[input];
    return static_cast<double>(
        read_as_float(view, view.elements() == 1 ? 0 : first_of(view, matrix, count) + i));
  };
  const auto y_scale = static_cast<double>(read_as_float(c.inputs[kYScale], 0));
  const auto y_zero = static_cast<double>(read_as_float(c.inputs[kYZero], 0));
  SmallFloatRules rules;
  for (int64_t batch = 0, to = 0; batch < p.batches; ++batch) {
    int64_t am = 0, bm = 0, rest = batch;
    for (size_t i = p.batch.size(); i-- > 0; rest /= p.batch[i]) {
      am += rest % p.batch[i] * p.a_step[i];
      bm += rest % p.batch[i] * p.b_step[i];
    }
    for (int64_t i = 0; i < p.m; ++i) {
      const double a_zero = value(kInputs.a_zero, am, p.m, i), a_scale = value(kAScale, am, p.m, i);
      for (int64_t j = 0; j < p.n; ++j, ++to) {
        const double b_zero = value(kInputs.b_zero, bm, p.n, j), b_scale = value(kBScale, bm, p.n, j);
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += (static_cast<double>(read_as_float(a, (am * p.m + i) * p.k + k)) - a_zero) *
                 (static_cast<double>(read_as_float(b, (bm * p.k + k) * p.n + j)) - b_zero);
        const double scaled = sum * a_scale * b_scale / y_scale;
        if (is_small_float(y.type)) {
          y.as<uint8_t>()[to] = static_cast<uint8_t>(encode_small_float(y.type, scaled + y_zero, rules));
        } else {
          const double least = y.type == ElementType::kInt8 ? -128 : 0;
          const double whole = std::clamp(std::rint(scaled) + y_zero, least, least + 255);
          y.as<uint8_t>()[to] = static_cast<uint8_t>(std::isnan(whole) ? 0 : static_cast<int>(whole));
        }
      }
    }
  }
}

}  // namespace

void run_qlinear_mat_mul(const RunContext& c) {
  const auto& choice = c.choice<QLinearMatMulChoice>();
  const auto is_byte = [&](size_t i) { return kByteTypes.contains(c.inputs[i].type); };
  if (is_byte(kInputs.a) && is_byte(kInputs.b) && is_byte(kYZero)) return run_bytes(c, choice);
  run_small_floats(c, choice);
}

Cost cost_qlinear_mat_mul(const NodeContext& c) {
  return cost_product(c, kInputs);
}

extern const OpDef op_qlinear_mat_mul = {
    .name = "QLinearMatMul",
    .inputs = {8, 8},
    .infer = infer_qlinear_mat_mul,
    .select = select_qlinear_mat_mul,
    .pack = pack_qlinear_mat_mul,
    .run = run_qlinear_mat_mul,
    .cost = cost_qlinear_mat_mul,
};

}  // namespace plimsoll
