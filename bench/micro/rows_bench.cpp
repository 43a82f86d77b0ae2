// Kernels that do little with each element, against the rate at which a core reads as many bytes: of a
// quarter of a megabyte, which a cache holds, and of 48 megabytes. What computes much (exp, erf, powers)
// shows a small share and its price for an element.
#include "kernels/arg_extreme.h"
#include "kernels/binary.h"
#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/normalize.h"
#include "kernels/pool.h"
#include "kernels/quantize.h"
#include "kernels/reduce.h"
#include "kernels/scale_shift.h"
#include "kernels/score_rows.h"
#include "kernels/softmax.h"
#include "kernels/unary.h"
#include "support.h"

#include <functional>
#include <string>

namespace plimsoll::micro {
namespace {

constexpr int64_t kCols = 768;  // of rows, where a kernel has rows

// Inputs and an output of `count` elements each.
struct Operands {
  explicit Operands(int64_t n) : count(n), rows(n / kCols), a(floats(n)), b(floats(n)), y(floats(n)) {}
  int64_t count, rows;
  Buffer a, b, y;
};

struct Kernel {
  std::string name;
  double elements_moved;  // read and written, for each element
  std::function<void(const Operands&)> call;
};

Kernel unary(const char* name, kernels::UnaryKind kind) {
  return {std::string("unary/") + name, 2,
          [kind](const Operands& o) { kernels::unary_f32({kind}, o.a.get(), o.y.get(), o.count); }};
}

Kernel binary(const char* name, kernels::BinaryKind kind, bool bias) {
  return {std::string("binary/") + name, bias ? 2.0 : 3.0, [=](const Operands& o) {
            const int64_t rows = bias ? o.rows : 1, cols = bias ? kCols : o.count;
            const kernels::BroadcastBlock block{rows, cols, 0, cols, {0, 0}, {cols, bias ? 0 : cols}, {1, 1}};
            kernels::binary(kind, block, o.a.get(), o.b.get(), o.y.get());
          }};
}

// An image whose rows have as many pixels as columns, 64 channels.
kernels::PoolShape pooled(const Operands& o, int64_t kernel, int64_t stride) {
  constexpr int64_t kChannels = 64, kWidth = 16;
  kernels::PoolShape s;
  s.channels = kChannels, s.in_w = kWidth, s.in_h = o.count / kChannels / kWidth;
  s.kernel_h = s.kernel_w = kernel, s.stride_h = s.stride_w = stride;
  s.out_h = (s.in_h - kernel) / stride + 1, s.out_w = (s.in_w - kernel) / stride + 1;
  return s;
}

// The last two axes of [n, rows, cols] change places.
void transpose(const Operands& o, int64_t rows, int64_t cols) {
  kernels::CopyShape shape;
  shape.add(cols, 1, rows);
  shape.add(rows, cols, 1);
  shape.add(o.count / rows / cols, rows * cols, rows * cols);
  kernels::strided_copy(reinterpret_cast<std::byte*>(o.y.get()), reinterpret_cast<std::byte*>(o.a.get()),
                        shape, sizeof(float), 1);
}

std::vector<Kernel> all() {
  using kernels::BinaryKind;
  using kernels::ReduceKind;
  using kernels::UnaryKind;
  return {
      unary("relu", UnaryKind::kRelu),
      unary("sqrt", UnaryKind::kSqrt),
      unary("exp", UnaryKind::kExp),
      unary("log", UnaryKind::kLog),
      unary("erf", UnaryKind::kErf),
      unary("tanh", UnaryKind::kTanh),
      unary("sigmoid", UnaryKind::kSigmoid),
      unary("silu", UnaryKind::kSilu),
      unary("gelu", UnaryKind::kGelu),
      unary("gelu_tanh", UnaryKind::kGeluTanh),
      unary("hard_swish", UnaryKind::kHardSwish),
      unary("sin", UnaryKind::kSin),
      binary("add", BinaryKind::kAdd, false),
      binary("add_bias", BinaryKind::kAdd, true),
      binary("div", BinaryKind::kDiv, false),
      binary("pow", BinaryKind::kPow, false),
      {"softmax/rows", 2,
       [](const Operands& o) { kernels::softmax_rows_f32(false, o.a.get(), o.y.get(), o.rows, kCols); }},
      {"softmax/columns", 2,
       [](const Operands& o) {
         kernels::softmax_columns_f32(false, o.a.get(), o.y.get(), o.rows, kCols, kCols);
       }},
      {"score_rows", 2,
       [](const Operands& o) {
         float factors[32];
         for (int64_t row = 0; row + 32 <= o.rows; row += 32)
           kernels::score_rows_f32(o.y.get() + row * kCols, 32, kCols, kCols, nullptr, 0, factors);
       }},
      {"layer_norm", 2,
       [](const Operands& o) {
         kernels::layer_norm_f32(o.a.get(), o.b.get(), o.b.get(), o.y.get(), o.rows, kCols, 1e-5f, nullptr,
                                 nullptr);
       }},
      {"scale_shift", 2,
       [](const Operands& o) {
         const kernels::ScaleShiftRows rows{o.rows, kCols, o.b.get(), o.b.get(), true, true, {}};
         kernels::scale_shift(rows, o.a.get(), nullptr, o.y.get());
       }},
      {"reduce/rows_sum", 1,
       [](const Operands& o) {
         kernels::reduce_rows_f32(ReduceKind::kSum, o.a.get(), o.rows, kCols, o.y.get());
       }},
      {"reduce/columns_max", 1,
       [](const Operands& o) {
         kernels::reduce_columns_f32(ReduceKind::kMax, o.a.get(), o.rows, kCols, kCols, o.y.get());
       }},
      {"arg_max/rows", 1,
       [](const Operands& o) {
         kernels::arg_rows<float>({}, o.a.get(), o.rows, kCols, reinterpret_cast<int64_t*>(o.y.get()));
       }},
      {"pool/max_3x3s2", 1.25,
       [](const Operands& o) { kernels::max_pool(pooled(o, 3, 2), o.a.get(), o.y.get(), 1); }},
      {"pool/average_2x2s2", 1.25,
       [](const Operands& o) { kernels::average_pool(pooled(o, 2, 2), false, o.a.get(), o.y.get(), 1); }},
      {"pool/whole_image", 1,
       [](const Operands& o) {
         kernels::average_pool(kernels::whole_image(1, o.count / 64, 64), false, o.a.get(), o.y.get(), 1);
       }},
      {"copy/transpose_32x768", 2, [](const Operands& o) { transpose(o, 32, kCols); }},
      {"copy/transpose_3_inner", 2, [](const Operands& o) { transpose(o, 3, o.count / 3); }},
      {"convert/f32_f16", 1.5,
       [](const Operands& o) {
         kernels::convert(ElementType::kFloat, o.a.get(), ElementType::kFloat16, o.y.get(), o.count);
       }},
      {"quantize/f32_u8", 1.25,
       [](const Operands& o) {
         kernels::quantize_8(o.a.get(), o.count, 0.01f, 3, 0, reinterpret_cast<uint8_t*>(o.y.get()), 1);
       }},
      {"dequantize/u8_f32", 1.25,
       [](const Operands& o) {
         kernels::dequantize_8(reinterpret_cast<const uint8_t*>(o.a.get()), false, o.count, 0.01f, 3,
                               o.y.get(), 1);
       }},
  };
}

const bool kRegistered = [] {
  for (const auto& [where, count] :
       {std::pair("near", int64_t{32 * kCols}), {"far", int64_t{6144 * kCols}}}) {
    for (const Kernel& kernel : all()) {
      const auto bytes = static_cast<int64_t>(kernel.elements_moved * static_cast<double>(floats(count)));
      benchmark::RegisterBenchmark(("rows/" + kernel.name + "/" + where).c_str(),
                                   [kernel, count = count, bytes](benchmark::State& state) {
                                     const Operands operands(count);
                                     measure_movement(state, bytes, count, [&] { kernel.call(operands); });
                                   })
          ->MinTime(0.1);
    }
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll::micro
